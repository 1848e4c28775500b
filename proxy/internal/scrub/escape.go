package scrub

import (
	"html"
	"unicode/utf16"
	"unicode/utf8"
)

// layers bounds nested escapes. A JSON string in JSON in a form has three.
const layers = 4

// none marks the end of a text, and a character that does not exist.
const none rune = -1

// text is a stretch of an answer.
type text struct {
	bytes []byte
	cut   bool // a read needed bytes after the end
}

// ways bounds the readings of a character.
const ways = 2*layers + 1

// reading is one way to read a character of a text.
type reading struct {
	char rune // a byte or a code point: below 256 the two are equal here, because programs confuse them
	end  int  // where the next character begins
}

// readings appends to dst the ways to read the character at index at. These are the unchanged character, one escape
// decoded, two nested escapes decoded, and so on.
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

// read returns the character at index at with up to depth layers of escapes decoded.
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

// undo decodes the escape that begins with the character first. It reads the characters after it with depth layers
// decoded. It reports false when first begins no escape.
func (t *text) undo(first reading, depth int) (reading, bool) {
	switch first.char {
	case '%':
		return t.hex(first.end, depth, 2)
	case '\\':
		return t.backslash(first.end, depth)
	}
	return t.entity(first.end, depth)
}

// hex reads a number of exactly the given number of hexadecimal digits.
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

// backslash reads the rest of a backslash escape of JSON, JavaScript and other languages. That is \uXXXX, \xXX, or a
// letter for a control character. Any other character that is neither letter nor digit means itself. That character
// may begin an escape itself, which decodes to a letter, as in \%61. Then it is left for the next layer.
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

// unicode reads the rest of a \u escape: a code point, or a surrogate and the second \u escape of the pair.
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

// control returns the control character that a backslash and c mean, none if there is no such character.
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

// Bounds of character references in HTML.
const (
	maxName   = 31 // letters and digits between "&" and ";"
	maxDigits = 10
)

// entity reads a character reference of HTML and XML after the "&": a name or a number.
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

// numeric reads a character reference after "&#".
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

// digit returns the value of a digit of the base, or -1 if c is not such a digit.
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
