package scrub

import "unicode/utf8"

// A pattern is one way in which a secret may stand in text, as the units that have to follow each other.
type pattern struct {
	units []unit
	// lines says that line breaks may stand between units, as in base64 that is folded.
	lines bool
}

// unit is one character of a pattern: of a secret, or of its base64.
type unit struct {
	raw [utf8.UTFMax]byte
	n   uint8 // bytes of raw
	alt byte  // another byte that stands for the same: of base64's other alphabet, or "+" for a space
}

// patternsOf returns the ways in which secret may stand in text.
func patternsOf(secret []byte) []pattern {
	patterns := make([]pattern, 0, 4)
	patterns = append(patterns, pattern{units: unitsOf(secret)})
	for shift := range 3 {
		if units := base64Units(secret, shift); len(units) > 0 {
			patterns = append(patterns, pattern{units: units, lines: true})
		}
	}
	return patterns
}

// unitsOf cuts a secret into characters; bytes that are not UTF-8 stand alone.
func unitsOf(secret []byte) []unit {
	units := make([]unit, 0, len(secret))
	for len(secret) > 0 {
		_, n := utf8.DecodeRune(secret)
		u := unit{n: uint8(n)}
		copy(u.raw[:], secret[:n])
		if secret[0] == ' ' {
			u.alt = '+' // as forms have it
		}
		units = append(units, u)
		secret = secret[n:]
	}
	return units
}

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// base64Units returns the characters of base64 text that secret alone determines where shift bytes stand
// before it in its group of three. The characters at both ends, which it shares with its neighbours, are
// left out: they tell at most four bits of it each.
func base64Units(secret []byte, shift int) []unit {
	from := (shift*8 + 5) / 6           // the first character that lies wholly in secret
	to := (shift*8 + len(secret)*8) / 6 // and the one after the last
	units := make([]unit, 0, max(0, to-from))
	for i := from; i < to; i++ {
		var v byte
		for bit := i*6 - shift*8; bit < i*6-shift*8+6; bit++ {
			v = v<<1 | secret[bit/8]>>(7-bit%8)&1
		}
		u := unit{n: 1}
		u.raw[0] = base64Alphabet[v]
		switch v {
		case 62:
			u.alt = '-'
		case 63:
			u.alt = '_'
		}
		units = append(units, u)
	}
	return units
}
