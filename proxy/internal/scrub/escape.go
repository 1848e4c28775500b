package scrub

import (
	"html"
	"unicode/utf16"
	"unicode/utf8"
)

// layers is how many escapes may lie over each other: of a JSON string in JSON in a form, there are three.
const layers = 4

// none is the character after the end of a text.
const none rune = -1

// text is a stretch of an answer.
type text struct {
	bytes []byte
	cut   bool // a character or an escape was wanted that goes on after the end
}

// ways is how many ways there may be to read a character.
const ways = 2*layers + 1

// reading is one way to read a character of a text.
type reading struct {
	char rune // a byte or a code point: those below 256 are not told apart, as programs mistake them for each other
	end  int  // where the next character begins
}

// readings appends to dst the ways to read the character at at: as it stands, with its escape undone, with what that
// gives undone as well, and so on.
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
			// In \%6E the backslash may stand before an n, for a line break, or before a percent sign.
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

// read returns the character at at after up to depth layers of escapes are undone.
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

// undo undoes the escape that begins with the character first. The characters after it are read with depth layers
// undone. It reports false where no escape stands.
func (t *text) undo(first reading, depth int) (reading, bool) {
	switch first.char {
	case '%':
		return t.hex(first.end, depth, 2)
	case '\\':
		return t.backslash(first.end, depth)
	}
	return t.entity(first.end, depth)
}

// hex reads a number of exactly so many hexadecimal digits.
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

// backslash reads what follows a backslash in JSON, in JavaScript and in other languages: \uXXXX, \xXX, a letter for a
// control character, or any character that is neither letter nor digit, which stands for itself. Where that is an
// escape of its own, undoing it first can leave a letter, as in \%61: then it is left for the next layer.
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

// unicode reads what follows \u: a code point, or half of one, after which another \u gives the other half.
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

// control returns the control character that a backslash and c stand for, none for no such.
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

// The longest references to characters in HTML.
const (
	maxName   = 31 // letters and digits between "&" and ";"
	maxDigits = 10
)

// entity reads what follows the "&" of a reference to a character in HTML and XML: a name or a number.
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

// numeric reads what follows "&#".
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

// digit returns the value of a digit of that base, -1 for what is none.
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
