package scrub

import (
	"bytes"
	"unicode/utf8"
)

// tokenStart returns where the token at the end of src begins, at the earliest at index from; len(src) for none. A token is
// a run of characters that occur in secrets, in base64 and in escapes. It may be folded into lines. tokenStart does not
// depend on any secret.
func tokenStart(src []byte, from int) int {
	for at := len(src); ; {
		end := foldStart(src[:at])
		start := end
		for start > from && isTokenByte(src[start-1]) {
			start--
		}
		if start == at || end < at && end-start < leastLine {
			return at
		}
		at = start
	}
}

// leastLine is the length of the shortest line that may be one of folded base64, in bytes. Programs fold at 64 or 76
// characters. A shorter line is passed on when it is complete.
const leastLine = 16

// isTokenByte reports whether c occurs in base64, in hexadecimal digits, in escapes, or in most secrets.
func isTokenByte(c byte) bool {
	return isAlphanumeric(rune(c)) || bytes.IndexByte([]byte("_-+/=%&#;\\"), c) >= 0
}

// foldStart returns the index of a line break and indentation at the end of src, and len(src) for none. The line break may
// be escaped.
func foldStart(src []byte) int {
	line := bytes.TrimRight(src, " \t")
	if broken := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")); len(broken) < len(line) {
		return len(broken)
	}
	for _, escaped := range []string{`\n`, `\r`, "%0a", "%0A", "%0d", "%0D", ";"} {
		if bytes.HasSuffix(line, []byte(escaped)) {
			return len(line)
		}
	}
	return len(src)
}

// firstOpen returns the first index in src[from:to] at which an unencoded secret may begin that ends after src. It returns to
// for none. Other forms consist of tokens.
func (m *Matcher) firstOpen(src []byte, from, to int) int {
	for at := m.next(src, from); at < to; at = m.next(src, at+1) {
		if m.open(&text{bytes: src[at:]}) {
			return at
		}
	}
	if last := len(src) - 1; to == len(src) && last >= from && m.first[src[last]] { // next tests no single byte
		return last
	}
	return to
}

// open reports whether t is the beginning of a secret as it is.
func (m *Matcher) open(t *text) bool {
	var buffer [ways]reading
	foreign := false
	for _, r := range t.readings(buffer[:0], 0) {
		if r.char >= utf8.RuneSelf {
			foreign = true
			continue
		}
		for _, p := range m.starts[r.char] {
			if p.kind == plain && p.match(t, 1, r.end, 1) == len(t.bytes) {
				return true
			}
		}
	}
	if foreign {
		for _, p := range m.foreign {
			if p.kind == plain && p.match(t, 0, 0, 0) == len(t.bytes) {
				return true
			}
		}
	}
	return false
}
