package scrub

import (
	"html"
	"unicode/utf16"
	"unicode/utf8"
)

// layers is how many nested escapes the package decodes. A JSON string inside JSON inside a form has three.
const layers = 4

// none stands for a character that does not exist: after the end of a text, or for an escape without a meaning.
const none rune = -1

// text is a stretch of an answer in which a Matcher tests whether a secret begins at the first byte.
type text struct {
	bytes []byte
	cut   bool // a read needed bytes after the end
}

// ways is the number of readings of one character that a buffer has room for.
const ways = 2*layers + 1

// reading is one way to read a character of a text.
type reading struct {
	char rune // a byte or a code point: below 256 the two are equal here, because programs confuse them
	end  int  // where the next character begins
}

// readings appends to dst the ways to read the character at index at: unchanged, and with one to layers nested escapes
// decoded. At the end of the text, readings appends nothing and sets t.cut.
func (t *text) readings(dst []reading, at int) []reading {
	if at >= len(t.bytes) {
		t.cut = true
		return dst
	}
	r := reading{rune(t.bytes[at]), at + 1}
	dst = append(dst, r)
	for depth := range layers {
		if !beginsEscape(r.char) {
			break
		}
		undone, ok := t.undo(r, depth)
		for shallower := depth - 1; ok && r.char == '\\' && undone.char < ' ' && shallower >= 0; shallower-- {
			// In \%6E the backslash may escape an n, which is a line break, or a percent sign.
			dst = append(dst, undone)
			undone, ok = t.undo(r, shallower)
		}
		if ok {
			r = undone
			dst = append(dst, r)
		}
	}
	return dst
}

// read returns the character at index at with up to depth layers of escapes decoded. At the end of the text, read
// returns none and sets t.cut.
func (t *text) read(at, depth int) reading {
	if at >= len(t.bytes) {
		t.cut = true
		return reading{none, at}
	}
	r := reading{rune(t.bytes[at]), at + 1}
	for inner := range depth {
		if !beginsEscape(r.char) {
			break
		}
		if undone, ok := t.undo(r, inner); ok {
			r = undone
		}
	}
	return r
}

func beginsEscape(c rune) bool { return c == '%' || c == '\\' || c == '&' }

// undo decodes the escape that begins with first, which must be "%", "\" or "&". Up to depth layers of other escapes
// are decoded in the rest of the escape. The result is false if no valid escape follows.
func (t *text) undo(first reading, depth int) (reading, bool) {
	switch first.char {
	case '%':
		return t.hex(first.end, depth, 2)
	case '\\':
		return t.backslash(first.end, depth)
	}
	return t.entity(first.end, depth)
}

// hex reads a hexadecimal number with the given number of digits at index at, and decodes up to depth layers of escapes
// in the digits. The result is false when a digit is missing.
func (t *text) hex(at, depth, digits int) (reading, bool) {
	var v rune
	for range digits {
		r := t.read(at, depth)
		d := digit(r.char, 16)
		if d < 0 {
			return reading{}, false
		}
		v, at = v<<4|d, r.end
	}
	return reading{v, at}, true
}

// backslash reads the rest of a backslash escape of JSON, JavaScript and other languages: \uXXXX, \xXX, or a letter for
// a control character. After a backslash, a character that is neither an ASCII letter nor a digit means itself. Up to
// depth layers of escapes are decoded after the backslash, and fewer when the result is no escape. Thus \%61 means %61,
// because \a is no escape.
func (t *text) backslash(at, depth int) (reading, bool) {
	for ; depth >= 0; depth-- {
		if r, ok := t.afterBackslash(t.read(at, depth), depth); ok {
			return r, true
		}
	}
	return reading{}, false
}

func (t *text) afterBackslash(r reading, depth int) (reading, bool) {
	switch {
	case r.char == 'x':
		return t.hex(r.end, depth, 2)
	case r.char == 'u':
		return t.unicode(r.end, depth)
	case isAlphanumeric(r.char):
		r.char = control(r.char)
	}
	return r, r.char != none
}

// unicode reads a \u escape after the "u": a code point, or a surrogate and the second \u escape of the pair. The
// result is false for a surrogate without its pair.
func (t *text) unicode(at, depth int) (reading, bool) {
	high, ok := t.hex(at, depth, 4)
	if !ok || !utf16.IsSurrogate(high.char) {
		return high, ok
	}
	backslash := t.read(high.end, depth)
	u := t.read(backslash.end, depth)
	if backslash.char != '\\' || u.char != 'u' {
		return reading{}, false
	}
	low, ok := t.hex(u.end, depth, 4)
	low.char = utf16.DecodeRune(high.char, low.char)
	return low, ok && low.char != utf8.RuneError
}

// control returns the control character that a backslash and c mean in JSON, and none if there is no such character.
func control(c rune) rune {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return none
}

// maxName and maxDigits bound a character reference of HTML: the letters and digits of a name, and the digits of a
// number.
const (
	maxName   = 31 // letters and digits between "&" and ";"
	maxDigits = 10
)

// entity reads a character reference of HTML or XML after the "&". entity reports false unless a name that HTML knows,
// or a number, and a ";" follow.
func (t *text) entity(at, depth int) (reading, bool) {
	r := t.read(at, depth)
	if r.char == '#' {
		return t.numeric(r.end, depth)
	}
	var buffer [maxName + 2]byte
	name := append(buffer[:0], '&')
	for isAlphanumeric(r.char) && len(name) <= maxName {
		name = append(name, byte(r.char))
		r = t.read(r.end, depth)
	}
	if r.char != ';' || len(name) == 1 {
		return reading{}, false
	}
	name = append(name, ';')
	meant := html.UnescapeString(string(name))
	char, size := utf8.DecodeRuneInString(meant)
	return reading{char, r.end}, size == len(meant)
}

// numeric reads a numeric character reference of HTML or XML after the "&#", in decimal or hexadecimal digits. The
// result is false without a ";" at the end, and for a number beyond Unicode or with more than maxDigits digits.
func (t *text) numeric(at, depth int) (reading, bool) {
	base := rune(10)
	r := t.read(at, depth)
	if r.char == 'x' || r.char == 'X' {
		base = 16
		r = t.read(r.end, depth)
	}
	var v rune
	for n := 0; ; n++ {
		d := digit(r.char, base)
		if d < 0 {
			return reading{v, r.end}, n > 0 && r.char == ';'
		}
		if v = v*base + d; n == maxDigits || v > utf8.MaxRune {
			return reading{}, false
		}
		r = t.read(r.end, depth)
	}
}

// digit returns the value of c as a digit of base 10 or 16, or -1 if c is not such a digit.
func digit(c, base rune) rune {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case base == 16 && 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case base == 16 && 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return -1
}

func isAlphanumeric(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
