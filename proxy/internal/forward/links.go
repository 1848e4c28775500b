package forward

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/lectern-dev/lectern/proxy/internal/target"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// links changes the headers by which a target leads clients on: Location, Content-Location and Link. In the base-URL form,
// a link that stays on the target's origin becomes one through the proxy. If the request bore a key for the proxy, a link
// that leads elsewhere gets another header. A client library would follow such a link, and send the key along.
type links struct {
	target *target.Target
	prefix string        // of the base-URL form, up to the scheme of the target; "" in the other form
	base   func() string // the scheme and host under which the client reaches the proxy
	keyed  bool          // the request bore a key
}

// base returns what a new link begins with: PUBLIC_URL or, on a host of the proxy's own, the scheme and host that the client
// used. PUBLIC_URL is then the URL of another host, and on a redirect to that, browsers send neither the page's origin nor
// Authorization.
func (in incoming) base(info *httpapi.Info) func() string {
	if strings.HasPrefix(in.prefix, "/proxy/") {
		return info.BaseURL
	}
	return info.RequestURL
}

// renamed are the headers of links that lead away from the proxy, by the header that the target sent.
var renamed = map[string]string{
	"Location": "X-Proxy-Location", "Content-Location": "X-Proxy-Content-Location", "Link": "X-Proxy-Link",
}

// rewrite changes the headers of an answer.
func (l links) rewrite(h http.Header) {
	if l.prefix == "" && !l.keyed {
		return
	}
	for name, aside := range renamed {
		if !l.keyed {
			aside = name
		}
		lines := h[name]
		delete(h, name)
		for _, line := range lines {
			stays, away := l.split(name, line)
			if stays != "" {
				h[name] = append(h[name], stays)
			}
			if away != "" {
				h[aside] = append(h[aside], away)
			}
		}
	}
}

// split returns the links of a line that stay, in the form for the client, and those that lead away.
func (l links) split(name, line string) (stays, away string) {
	if name != "Link" {
		if to, ok := l.through(line); ok {
			return to, ""
		}
		return "", line
	}
	list, ok := readLinks(line)
	if !ok {
		return "", line
	}
	var staying, leaving []string
	for _, link := range list {
		if to, ok := l.through(link.target); ok {
			staying = append(staying, "<"+to+">"+link.parameters)
		} else {
			leaving = append(leaving, "<"+link.target+">"+link.parameters)
		}
	}
	return strings.Join(staying, ", "), strings.Join(leaving, ", ")
}

// scheme matches the scheme at the beginning of an absolute URL (RFC 3986, section 3.1).
var scheme = regexp.MustCompile(`\A[A-Za-z][A-Za-z0-9+.-]*:`)

// through returns the link that a client can follow through the proxy. It reports false and the link itself if that
// leads elsewhere, or if clients may read it in different ways.
func (l links) through(link string) (string, bool) {
	// Browsers remove tabs, and control characters and spaces around a URL (URL standard, section 4.4).
	text := strings.TrimFunc(strings.ReplaceAll(link, "\t", ""), func(c rune) bool { return c <= ' ' })
	absolute := scheme.MatchString(text)
	switch {
	case strings.Contains(text, `\`): // browsers take it for a slash
		return link, false
	case l.prefix == "":
		return link, !absolute && !strings.HasPrefix(text, "//") // it ends at our own 404
	case encodedPlaceholder.MatchString(text): // only the caller may name credentials
		return link, false
	}
	plain, fragment, fragmented := strings.Cut(text, "#")
	if !absolute {
		resolved, err := l.resolve(plain)
		if err != nil {
			return link, false
		}
		plain = resolved
	}
	to, err := target.Parse(plain)
	if err != nil || to.Origin() != l.target.Origin() {
		return link, false
	}
	url := l.base() + l.prefix + inPath(to)
	if fragmented {
		url += "#" + fragment
	}
	return url, true
}

// resolve returns the absolute URL of a relative one. The placeholders of the target's URL stay placeholders.
func (l links) resolve(relative string) (string, error) {
	base, err := url.Parse(escapePlaceholders.Replace(l.target.URL()))
	if err != nil {
		return "", err
	}
	to, err := base.Parse(relative)
	if err != nil {
		return "", err
	}
	return encodedPlaceholder.ReplaceAllString(to.String(), "{{$1}}"), nil
}

// inPath returns a target as the base-URL form has it after the prefix.
func inPath(t *target.Target) string {
	return escapePlaceholders.Replace(strings.Replace(t.URL(), "://", "/", 1))
}

// escapePlaceholders writes placeholders in a way that is valid in a URL.
var escapePlaceholders = strings.NewReplacer("{", "%7B", "}", "%7D", " ", "%20")

// link is a member of a Link header.
type link struct {
	target     string
	parameters string // with the ";" before them; "" for none
}

// readLinks reads a Link header (RFC 8288, section 3). It reports false for text that clients may read in different ways.
func readLinks(line string) (list []link, ok bool) {
	for _, member := range splitList(line) {
		inside, found := strings.CutPrefix(member, "<")
		to, parameters, closed := strings.Cut(inside, ">")
		if !found || !closed || strings.ContainsAny(parameters, "<>") || strings.Contains(to, "<") {
			return nil, false
		}
		list = append(list, link{to, parameters})
	}
	return list, true
}
