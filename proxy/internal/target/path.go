package target

import (
	"strings"
	"unicode/utf8"

	"github.com/lectern-dev/lectern/proxy/internal/template"
)

const hexDigits = "0123456789ABCDEF"

// normalPath returns the normal form of a path (RFC 3986, section 6.2.2) without dot segments, and "/" for an empty
// path. Characters that a path must not contain become percent-encoded. The error refuses a path that is invalid or
// that servers may read differently, and dot segments that would remove a placeholder.
func normalPath(path string) (string, error) {
	if path == "" {
		return "/", nil
	}
	b := make([]byte, 0, len(path)+8)
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c == '\\':
			return "", refuse("has a backslash in its path")
		case c == '%':
			if i+2 >= len(path) || unhex(path[i+1]) < 0 || unhex(path[i+2]) < 0 {
				return "", refuse("has a %% in its path that is followed by no two hex digits; write %%25")
			}
			v := byte(unhex(path[i+1])<<4 | unhex(path[i+2]))
			i += 2
			switch {
			case template.IsUnreserved(v):
				b = append(b, v)
			case v == 0:
				return "", refuse("has an encoded NUL in its path")
			default:
				b = append(b, '%', hexDigits[v>>4], hexDigits[v&15])
			}
		case c == hole, isPathByte(c):
			b = append(b, c)
		default:
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	text, ok := removeDots(string(b))
	if !ok {
		return "", refuse("has a placeholder in its path that dot segments take away")
	}
	if hidesDots(text) {
		return "", refuse("has dot segments in its path that are hidden by encoding")
	}
	return text, nil
}

// appendQuery returns a query with its spaces, control characters and non-ASCII bytes percent-encoded. Holes and all
// other bytes stay unchanged. dst is an empty buffer for the result, or nil.
func appendQuery(dst []byte, query string) string {
	plain := true
	for i := range len(query) {
		plain = plain && (query[i] > ' ' && query[i] < 0x7F || query[i] == hole)
	}
	if plain {
		return query
	}
	for i := range len(query) {
		c := query[i]
		if c > ' ' && c < 0x7F || c == hole {
			dst = append(dst, c)
			continue
		}
		dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
	}
	return string(dst)
}

// removeDots removes the dot segments of a path that begins with a slash (RFC 3986, section 5.2.4). The result is false
// if a double-dot segment would remove a placeholder: the path sent would lack a credential that the target names.
func removeDots(path string) (string, bool) {
	if !strings.Contains(path, "/.") {
		return path, true
	}
	var kept []string
	segments := strings.Split(path[1:], "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".":
		case "..":
			if len(kept) > 0 {
				if strings.ContainsRune(kept[len(kept)-1], hole) {
					return "", false
				}
				kept = kept[:len(kept)-1]
			}
		default:
			kept = append(kept, s)
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/"), true
}

// hidesDots reports whether a server may find dot segments in a path that is in normal form. Some servers decode a path
// several times, treat backslashes as slashes, or ignore the parameters of segments. hidesDots also returns true for a
// path that is percent-encoded four times or more.
func hidesDots(path string) bool {
	if !strings.ContainsAny(path, ".%") {
		return false
	}
	for range 4 {
		for segment := range strings.FieldsFuncSeq(path, isSlash) {
			name, _, _ := strings.Cut(segment, ";")
			name = strings.TrimFunc(name, isIgnored)
			if name == "." || name == ".." {
				return true
			}
		}
		decoded := overlongDots.Replace(decode(path))
		if decoded == path {
			return false
		}
		path = decoded
	}
	return true // no client encodes a path this often on purpose
}

// overlongDots replaces the overlong UTF-8 encodings of a dot in two to four bytes with a dot. UTF-8 forbids overlong
// encodings, but some servers accept them.
var overlongDots = strings.NewReplacer("\xC0\xAE", ".", "\xE0\x80\xAE", ".", "\xF0\x80\x80\xAE", ".")

// isSlash reports whether a server may treat r, a character of a decoded path, as a slash. Such characters are a slash,
// a backslash, a full-width slash, and U+FFFD, which stands for a byte that is not valid UTF-8. Overlong encodings of a
// slash consist of invalid bytes.
func isSlash(r rune) bool { return r == '/' || r == '\\' || r == '／' || r == utf8.RuneError }

// isIgnored reports whether a server may ignore r at the beginning or the end of a segment: a space or an ASCII control
// character.
func isIgnored(r rune) bool { return r <= ' ' || r == 0x7F }

// decode returns text with one layer of percent-encoding removed. A "%" without two hex digits after it stays.
func decode(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) && unhex(text[i+1]) >= 0 && unhex(text[i+2]) >= 0 {
			b = append(b, byte(unhex(text[i+1])<<4|unhex(text[i+2])))
			i += 2
			continue
		}
		b = append(b, text[i])
	}
	return string(b)
}

// isPathByte reports whether a path may contain c unencoded (RFC 3986, section 3.3).
func isPathByte(c byte) bool {
	return template.IsUnreserved(c) || strings.IndexByte("/!$&'()*+,;=:@", c) >= 0
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
