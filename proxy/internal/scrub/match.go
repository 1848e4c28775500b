package scrub

import (
	"unicode/utf16"
	"unicode/utf8"
)

// outcome is what can be told of a pattern at a place.
type outcome uint8

const (
	no    outcome = iota // it does not stand there
	yes                  // it does
	maybe                // the text ends before that can be told
)

// match reports whether p stands at the beginning of text, and where it ends at the latest. Most text has one
// way to be read; where there are several (a secret with a percent sign in it), all are followed at once,
// so the work grows with the length of what is matched and never faster.
func (p *pattern) match(text []byte, atEOF bool) (int, outcome) {
	var first, second [8]int
	here, then := append(first[:0], 0), second[:0]
	open := false
	for i := range p.units {
		u := &p.units[i]
		then = then[:0]
		for _, at := range here {
			if i > 0 && p.lines {
				at = skipFold(text, at)
			}
			if at == len(text) {
				open = true
				continue
			}
			c := text[at]
			switch {
			case c == u.raw[0] && u.n == 1, c == u.alt && u.alt != 0:
				then = add(then, at+1)
			case u.n > 1 && (c == u.raw[0] || c == '%'):
				end, o := u.matchBytes(text, at)
				open = open || o == maybe
				if o == yes {
					then = add(then, end)
				}
				continue
			}
			if c == '%' && u.n == 1 {
				end, o := matchPercent(text, at, u.raw[0], u.alt)
				open = open || o == maybe
				if o == yes {
					then = add(then, end)
				}
			}
			if c == '\\' {
				end, o := u.matchEscape(text, at)
				open = open || o == maybe
				if o == yes {
					then = add(then, end)
				}
			}
		}
		here, then = then, here
		if len(here) == 0 {
			break
		}
	}
	switch {
	case open && !atEOF:
		return 0, maybe
	case len(here) == 0:
		return 0, no
	}
	end := here[0]
	for _, e := range here {
		end = max(end, e)
	}
	return end, yes
}

// add adds a place once.
func add(places []int, at int) []int {
	for _, p := range places {
		if p == at {
			return places
		}
	}
	return append(places, at)
}

// skipFold returns where text goes on after the line break that stands at at, as it is or as JSON
// escapes it.
func skipFold(text []byte, at int) int {
	for range 2 {
		switch {
		case at < len(text) && (text[at] == '\r' || text[at] == '\n'):
			at++
		case at+1 < len(text) && text[at] == '\\' && (text[at+1] == 'n' || text[at+1] == 'r'):
			at += 2
		default:
			return at
		}
	}
	return at
}

// matchBytes matches a character of several bytes, each as it is or percent-encoded.
func (u *unit) matchBytes(text []byte, at int) (int, outcome) {
	for i := range int(u.n) {
		if at == len(text) {
			return 0, maybe
		}
		if text[at] == u.raw[i] {
			at++
			continue
		}
		end, o := matchPercent(text, at, u.raw[i], 0)
		if o != yes {
			return 0, o
		}
		at = end
	}
	return at, yes
}

// matchPercent matches %XX for c or, when that is not 0, alt.
func matchPercent(text []byte, at int, c, alt byte) (int, outcome) {
	if text[at] != '%' {
		return 0, no
	}
	v := 0
	for i := 1; i < 3; i++ {
		if at+i == len(text) {
			return 0, maybe
		}
		d := unhex(text[at+i])
		if d < 0 {
			return 0, no
		}
		v = v<<4 | d
	}
	if byte(v) == c || alt != 0 && byte(v) == alt {
		return at + 3, yes
	}
	return 0, no
}

// matchEscape matches a character as JSON escapes it: \" \\ \/ \b \f \n \r \t \uXXXX.
func (u *unit) matchEscape(text []byte, at int) (int, outcome) {
	if at+1 == len(text) {
		return 0, maybe
	}
	e := text[at+1]
	if e != 'u' {
		if u.n != 1 {
			return 0, no
		}
		if c := unescape(e); c != 0 && (c == u.raw[0] || c == u.alt && u.alt != 0) {
			return at + 2, yes
		}
		return 0, no
	}
	r, size := utf8.DecodeRune(u.raw[:u.n])
	if r == utf8.RuneError && size <= 1 {
		return 0, no // no character: JSON cannot escape it
	}
	end, o := matchUnicode(text, at, r, rune(u.alt))
	if o != no || r <= 0xFFFF {
		return end, o
	}
	high, low := utf16.EncodeRune(r)
	end, o = matchUnicode(text, at, high, 0)
	if o != yes {
		return 0, o
	}
	if end == len(text) {
		return 0, maybe
	}
	return matchUnicode(text, end, low, 0)
}

// matchUnicode matches \uXXXX for r or, when that is not 0, alt.
func matchUnicode(text []byte, at int, r, alt rune) (int, outcome) {
	if text[at] != '\\' {
		return 0, no
	}
	if at+1 == len(text) {
		return 0, maybe
	}
	if text[at+1] != 'u' {
		return 0, no
	}
	var v rune
	for i := 2; i < 6; i++ {
		if at+i == len(text) {
			return 0, maybe
		}
		d := unhex(text[at+i])
		if d < 0 {
			return 0, no
		}
		v = v<<4 | rune(d)
	}
	if v == r || alt != 0 && v == alt {
		return at + 6, yes
	}
	return 0, no
}

// unescape returns what \e stands for in JSON, 0 for nothing.
func unescape(e byte) byte {
	switch e {
	case '"', '\\', '/':
		return e
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
	return 0
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
