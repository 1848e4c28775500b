package forward

import (
	"maps"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// decidedBy names request headers that affect the proxy's decision, for the header Vary.
var decidedBy = []string{"Origin", "X-Project-ID", "X-Environment", "X-Proxy-Api-Key"}

// keepPrivate prevents shared caches from storing an answer to a request with a credential. A request can have the same
// URL in several projects, and a different answer in each. keepPrivate adds decidedBy to Vary, and removes the headers
// that some caches obey in place of Cache-Control.
func keepPrivate(h http.Header) {
	kept := []string{"private"}
	for _, line := range h["Cache-Control"] {
		for _, directive := range splitList(line) {
			name, _, _ := strings.Cut(directive, "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "", "private", "public", "s-maxage":
				continue
			}
			kept = append(kept, directive)
		}
	}
	h["Cache-Control"] = []string{strings.Join(kept, ", ")}
	maps.DeleteFunc(h, func(name string, _ []string) bool {
		return commandsSomeCaches(name) || name != "Cache-Control" && dashed(name) == "Cache-Control"
	})
	vary := h["Vary"]
	for _, name := range decidedBy {
		if !httpguts.HeaderValuesContainsToken(vary, name) {
			vary = append(vary, name)
		}
	}
	h["Vary"] = vary
}

// commandsSomeCaches reports whether name is a header that some caches obey in place of Cache-Control (RFC 9213,
// section 2.1).
func commandsSomeCaches(name string) bool {
	name = dashed(name)
	return strings.HasSuffix(name, "-Cache-Control") || name == "Surrogate-Control" || name == "Edge-Control"
}

// splitList splits a list at its commas, except those in quotes, and trims the items (RFC 9110, section 5.6.1).
func splitList(line string) (items []string) {
	quoted, escaped := false, false
	split := func(c rune) bool {
		if escaped {
			escaped = false
			return false
		}
		switch c {
		case '\\':
			escaped = quoted
		case '"':
			quoted = !quoted
		}
		return c == ',' && !quoted
	}
	for _, item := range strings.FieldsFunc(line, split) {
		items = append(items, strings.TrimSpace(item))
	}
	return items
}
