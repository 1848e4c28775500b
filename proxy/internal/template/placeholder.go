// Package template finds placeholders in text and replaces them with the values of credentials. In URLs, JSON and
// forms, the package escapes the values. The package does not scan inserted values, so a placeholder inside a value
// stays text.
//
// A placeholder is
//
//	\{\{ {0,16}(cred_[A-Za-z0-9_-]{1,64}) {0,16}\}\}
//
// Other text in double braces stays unchanged.
package template

import (
	"bytes"
	"strings"

	"github.com/lectern-dev/lectern/proxy/secret"
)

// maxSpaces is the greatest number of spaces between the braces and the id of a placeholder, on each side.
const maxSpaces = 16

// scan returns the id and length of the placeholder that b begins with, and a length of 0 for none. more reports that
// b ends too early to decide.
func scan(b []byte) (id []byte, length int, more bool) {
	i := 0
	for ; i < 2; i++ {
		if i == len(b) {
			return nil, 0, true
		}
		if b[i] != '{' {
			return nil, 0, false
		}
	}
	i, more = spaces(b, i)
	if more {
		return nil, 0, true
	}
	from := i
	for j := range len(secret.IDPrefix) {
		if i == len(b) {
			return nil, 0, true
		}
		if b[i] != secret.IDPrefix[j] {
			return nil, 0, false
		}
		i++
	}
	for i < len(b) && i-from < secret.MaxIDBytes && secret.IsIDByte(b[i]) {
		i++
	}
	to := i
	if to-from == len(secret.IDPrefix) && i < len(b) {
		return nil, 0, false
	}
	if i, more = spaces(b, i); more {
		return nil, 0, true
	}
	for range 2 {
		if i == len(b) {
			return nil, 0, true
		}
		if b[i] != '}' {
			return nil, 0, false
		}
		i++
	}
	return b[from:to], i, false
}

// spaces returns the index after up to maxSpaces spaces in b from index i on, and reports whether b ends there.
func spaces(b []byte, i int) (int, bool) {
	for n := 0; n < maxSpaces && i < len(b) && b[i] == ' '; n++ {
		i++
	}
	return i, i == len(b)
}

// Find returns the first placeholder in b, which is b[from:to], and its id. ok is false when there is no placeholder.
func Find(b []byte) (from, to int, id []byte, ok bool) {
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte("{{"))
		if i < 0 {
			return 0, 0, nil, false
		}
		at += i
		if id, n, _ := scan(b[at:]); n > 0 {
			return at, at + n, id, true
		}
		at++
	}
}

// Has reports whether text holds a placeholder.
func Has(text string) bool {
	_, _, _, ok := Find([]byte(text))
	return ok
}

// Each calls yield with the id of each placeholder in text, in order.
func Each(text string, yield func(id string)) {
	if !strings.Contains(text, "{{") {
		return
	}
	rest := []byte(text)
	for {
		_, to, id, ok := Find(rest)
		if !ok {
			return
		}
		yield(string(id))
		rest = rest[to:]
	}
}

// Replace returns text with each placeholder replaced by the bytes that value appends for its id.
func Replace(text string, value func(dst []byte, id string) []byte) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	rest := []byte(text)
	var out []byte
	for {
		from, to, id, ok := Find(rest)
		if !ok {
			break
		}
		out = append(out, rest[:from]...)
		out = value(out, string(id))
		rest = rest[to:]
	}
	if out == nil {
		return text
	}
	return string(append(out, rest...))
}
