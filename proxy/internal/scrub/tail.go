package scrub

import (
	"bytes"
	"unicode/utf8"
)

// tokenStart returns the index at which the token at the end of src begins, but no index before from. Without a token
// at the end, tokenStart returns len(src). A token is a run of characters that occur in secrets, in base64 and in
// escapes, and may be folded into lines. The result does not depend on any secret, so a client cannot use it to guess a
// secret.
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

// leastLine is the length of the shortest line that may be a line of folded base64, in bytes. Programs fold at 64 or 76
// characters. A shorter line that is complete does not belong to a token.
const leastLine = 16

// isTokenByte reports whether c may occur in base64, in hexadecimal digits or in escapes, or is common in secrets.
func isTokenByte(c byte) bool {
	return isAlphanumeric(rune(c)) || bytes.IndexByte([]byte("_-+/=%&#;\\"), c) >= 0
}

// foldStart returns the index at which the line break and indentation at the end of src begin, and len(src) for none.
// For an escaped line break, foldStart returns the end of the escape, because an escape consists of token bytes.
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

// firstOpen returns the first index in src[from:to] at which an unencoded secret may begin that continues after src.
// For no such secret, firstOpen returns the index to. Encoded forms of a secret consist of token bytes, which
// tokenStart finds.
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

// open reports whether all of t may be the beginning of an unencoded secret. Characters of the secret may be escaped.
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
