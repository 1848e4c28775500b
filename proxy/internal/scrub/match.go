package scrub

import (
	"math"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// match returns the end of the longest secret that begins at index 0 of t, and 0 for none. last reports that the answer
// ends with t. At the end of an answer, a prefix of a pattern counts too, if the prefix has at least pattern.least
// bytes.
func (m *Matcher) match(t *text, last bool) (end int) {
	var buffer [ways]reading
	foreign := false
	for _, r := range t.readings(buffer[:0], 0) {
		if r.char >= utf8.RuneSelf {
			foreign = true
			continue
		}
		for _, p := range m.starts[r.char] {
			end = max(end, p.match(t, 1, r.end, p.fromCut(last)))
		}
	}
	if foreign {
		for _, p := range m.foreign {
			end = max(end, p.match(t, 0, 0, p.fromCut(last)))
		}
	}
	return end
}

// never is a prefix length that no pattern has. With never, only a whole pattern matches.
const never = math.MaxInt

// fromCut returns the length in bytes of the shortest prefix of p that matches at the end of a text. If the answer
// continues after the text (last is false), fromCut returns never.
func (p *pattern) fromCut(last bool) int {
	if last {
		return p.least
	}
	return never
}

// match returns the end in t of the text of p from byte i on, which must begin at index at. The result is 0 if p does
// not match there. Where t ends, a prefix of at least least bytes matches too.
func (p *pattern) match(t *text, i, at, least int) (end int) {
	var first, second [8]int
	here, next := append(first[:0], at), second[:0]
	for i < len(p.text) {
		char, size := p.character(i)
		next = next[:0]
		t.cut = false
		for _, at := range here {
			if p.kind == inBase && i > 0 {
				at = t.skipFold(at)
			}
			next = p.step(t, next, i, char, size, at)
		}
		if i >= least && (t.cut || len(next) == 0 && p.endsPadded(t, here)) {
			return len(t.bytes)
		}
		if len(next) == 0 {
			return 0
		}
		here, next = next, here
		i += size
	}
	for _, at := range here {
		end = max(end, at)
	}
	return end
}

// step appends to ends the positions at which one character of p can end in t, if the character begins at index at. The
// arguments i, char and size are the index, the value and the length of the character in p.
func (p *pattern) step(t *text, ends []int, i int, char rune, size, at int) []int {
	if char < utf8.RuneSelf && at < len(t.bytes) && !beginsEscape(rune(t.bytes[at])) { // the common case
		if p.accepts(p.text[i], rune(t.bytes[at])) {
			ends = add(ends, at+1)
		}
		return ends
	}
	var buffer [ways]reading
	for _, r := range t.readings(buffer[:0], at) {
		if r.char == char || size == 1 && p.accepts(p.text[i], r.char) {
			ends = add(ends, r.end)
		}
	}
	if char < utf8.RuneSelf {
		return ends
	}
	return stepBytes(t, ends, p.text[i:i+size], at)
}

// stepBytes appends to ends the positions at which a non-ASCII character can end, if t contains its UTF-8 bytes one by
// one. A program that mistakes UTF-8 for ISO 8859-1 encodes each byte as a character, again in UTF-8: C3 BC becomes C3
// 83 C2 BC. A program that mistakes UTF-8 for windows-1252 writes other characters for most of the bytes 80 to 9F: C3
// 9F becomes C3 83 C5 B8.
func stepBytes(t *text, ends []int, char []byte, at int) []int {
	var first, second [8]int
	here, next := append(first[:0], at), second[:0]
	for _, c := range char {
		next = next[:0]
		for _, at := range here {
			next = stepRune(t, next, rune(c), at)
			if other := charmap.Windows1252.DecodeByte(c); other != rune(c) && other != utf8.RuneError {
				next = stepRune(t, next, other, at)
			}
		}
		here, next = next, here
	}
	for _, at := range here {
		ends = add(ends, at)
	}
	return ends
}

// stepRune appends to ends the positions at which char can end in t, if char begins at index at. The text may contain
// char escaped, or in UTF-8.
func stepRune(t *text, ends []int, char rune, at int) []int {
	var buffer [ways]reading
	for _, r := range t.readings(buffer[:0], at) {
		if r.char == char {
			ends = add(ends, r.end)
		}
	}
	var encoded [utf8.UTFMax]byte
	return stepEach(t, ends, utf8.AppendRune(encoded[:0], char), at)
}

// stepEach appends to ends the positions at which a sequence of bytes can end in t, if the sequence begins at index at.
// Each byte may be escaped.
func stepEach(t *text, ends []int, sequence []byte, at int) []int {
	if len(sequence) == 0 {
		return add(ends, at)
	}
	var buffer [ways]reading
	for _, r := range t.readings(buffer[:0], at) {
		if r.char == rune(sequence[0]) {
			ends = stepEach(t, ends, sequence[1:], r.end)
		}
	}
	return ends
}

// add returns positions with at. If positions contains at, add returns positions unchanged.
func add(positions []int, at int) []int {
	for _, p := range positions {
		if p == at {
			return positions
		}
	}
	return append(positions, at)
}

// skipFold returns the position after a line break at index at and the indentation of the next line. The line break and
// the indentation may be escaped. skipFold returns at if there is no line break.
func (t *text) skipFold(at int) int {
	next := t.skip(t.skip(at, func(c rune) bool { return c == '\r' }), func(c rune) bool { return c == '\n' })
	if next == at {
		return at
	}
	for {
		after := t.skip(next, isBlank)
		if after == next {
			return next
		}
		next = after
	}
}

func isBlank(c rune) bool { return c == ' ' || c == '\t' }

// skip returns the index after the character at index at, if class accepts one of the character's readings. Otherwise
// skip returns at.
func (t *text) skip(at int, class func(rune) bool) int {
	if at >= len(t.bytes) {
		return at
	}
	if c := rune(t.bytes[at]); !class(c) && !beginsEscape(c) {
		return at
	}
	next := at
	var buffer [ways]reading
	for _, r := range t.readings(buffer[:0], at) {
		if class(r.char) {
			next = r.end
		}
	}
	return next
}

// endsPadded reports whether p is base64, and at most three bytes of t follow one of the positions. Base64 text can end
// with three bytes that p does not contain: a character that also encodes other bits, and two of padding.
func (p *pattern) endsPadded(t *text, positions []int) bool {
	const longest = len("x==")
	for _, at := range positions {
		if p.kind == inBase && len(t.bytes)-at <= longest {
			return true
		}
	}
	return false
}
