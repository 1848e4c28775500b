package scrub

import (
	"bytes"
	"encoding/hex"
	"slices"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/proxy/secret"
	"github.com/lectern-dev/lectern/shared/wire"
)

// kind says how a pattern encodes a secret: plain, in base64 or in hexadecimal digits.
type kind uint8

const (
	plain   kind = iota
	inBase       // base64 of either alphabet, which may be folded into indented lines
	inHexes      // hexadecimal digits of either case
)

// pattern is one encoding of a secret that a Matcher searches for. The Matcher also finds escaped forms of the text.
type pattern struct {
	text []byte
	kind kind
	// least is the length of the shortest prefix of text, in bytes, that must not pass at the end of an answer.
	least int
}

// patternsOf returns the patterns of a value: those of spellings and, for a value with line breaks, those of its lines.
// Programs indent lines and change line breaks. Lines with fewer than secret.MinSearchable bytes and lines with PEM
// armor get no patterns.
func patternsOf(value []byte) []*pattern {
	patterns := spellings(value)
	lines := bytes.FieldsFunc(value, isLineBreak)
	if len(lines) == 1 && len(lines[0]) == len(value) {
		return patterns
	}
	for _, line := range lines {
		if len(line) >= secret.MinSearchable && !isArmor(line) {
			patterns = append(patterns, spellings(line)...)
		}
	}
	return patterns
}

func isLineBreak(c rune) bool { return c == '\r' || c == '\n' }

// isArmor reports whether line begins with five hyphens, as the first and the last line of a PEM block do (RFC 7468,
// section 2). Those lines are not secret.
func isArmor(line []byte) bool { return bytes.HasPrefix(line, []byte("-----")) }

// spellings returns the patterns of a value as a whole: plain, in base64, in base64 that is encoded once more, and in
// hexadecimal digits. Base64 and hexadecimal patterns also exist for the ISO 8859-1 form of the value, and base64
// patterns for its forms in URLs, forms and JSON.
func spellings(value []byte) []*pattern {
	n := len(value)
	patterns := []*pattern{
		{text: bytes.Clone(value), least: secret.MinSearchable},
		hexPattern(value),
	}
	written := [][]byte{value}
	if latin1 := inLatin1(value); latin1 != nil {
		patterns = append(patterns, hexPattern(latin1))
		written = append(written, latin1)
	}
	// The capacity fits the longest result, so that append leaves no copy that Zero cannot reach.
	for _, w := range [][]byte{
		template.AppendURL(make([]byte, 0, 3*n), value), template.AppendForm(make([]byte, 0, 3*n), value), wire.AppendTextPart(make([]byte, 0, 6*n), value),
	} {
		if slices.ContainsFunc(written, func(other []byte) bool { return bytes.Equal(w, other) }) {
			clear(w)
			continue
		}
		written = append(written, w)
	}
	patterns = append(patterns, twice(value)...)
	for i, w := range written {
		for shift := range 3 {
			patterns = append(patterns, base64Pattern(w, shift))
		}
		if i > 0 {
			clear(w)
		}
	}
	return patterns
}

// twice returns the patterns of a value in base64 that is encoded once more, as base64 or as hexadecimal digits. A
// target may return Basic credentials, which are base64 already, in a further encoding. The patterns cover each
// alignment, because the user name before a password shifts the password.
func twice(value []byte) (patterns []*pattern) {
	for shift := range 3 {
		once := base64Pattern(value, shift).text
		for _, inner := range [][]byte{once, inURLAlphabet(once)} { // in this order: clear overwrites
			if inner == nil {
				continue
			}
			patterns = append(patterns, hexPattern(inner))
			for outer := range 3 {
				patterns = append(patterns, base64Pattern(inner, outer))
			}
			clear(inner)
		}
	}
	return patterns
}

// inURLAlphabet returns base64 text in the alphabet for URLs, and nil if the text is the same in both alphabets.
func inURLAlphabet(text []byte) []byte {
	if !bytes.ContainsAny(text, "+/") {
		return nil
	}
	return bytes.Map(func(c rune) rune {
		switch c {
		case '+':
			return '-'
		case '/':
			return '_'
		}
		return c
	}, text)
}

// inLatin1 returns the ISO 8859-1 form of a value. The result is nil if the form equals the value, does not exist, or
// is shorter than secret.MinSearchable.
func inLatin1(value []byte) []byte {
	latin1 := make([]byte, len(value)) // the encoder leaves no copy that Zero cannot reach
	n, _, err := charmap.ISO8859_1.NewEncoder().Transform(latin1, value, true)
	if err != nil || n == len(value) || n < secret.MinSearchable {
		clear(latin1)
		return nil
	}
	return latin1[:n]
}

func hexPattern(value []byte) *pattern {
	return &pattern{text: hex.AppendEncode(make([]byte, 0, 2*len(value)), value), kind: inHexes, least: 2 * secret.MinSearchable}
}

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// base64Pattern returns the pattern of the base64 characters that value alone determines. shift is the number of bytes
// (0 to 2) that come before the value in a group of three bytes. The pattern omits the characters at both ends that
// also encode neighbouring bytes. Each omitted character contains at most four bits of the value.
func base64Pattern(value []byte, shift int) *pattern {
	from := (shift*8 + 5) / 6          // the first character that lies wholly in value
	to := (shift*8 + len(value)*8) / 6 // and the one after the last
	p := &pattern{text: make([]byte, 0, max(0, to-from)), kind: inBase, least: (shift+secret.MinSearchable)*8/6 - from}
	for i := from; i < to; i++ {
		var v byte
		for bit := i*6 - shift*8; bit < i*6-shift*8+6; bit++ {
			v = v<<1 | value[bit/8]>>(7-bit%8)&1
		}
		p.text = append(p.text, base64Alphabet[v])
	}
	return p
}

// alternative returns the other byte that may represent c in a text, for example "-" for "+" in base64. alternative
// returns c itself if there is no other byte.
func (p *pattern) alternative(c byte) byte {
	switch {
	case p.kind == plain && c == ' ':
		return '+' // form-encoded
	case p.kind == inBase && c == '+':
		return '-'
	case p.kind == inBase && c == '/':
		return '_'
	case p.kind == inHexes && c >= 'a':
		return c - 'a' + 'A'
	}
	return c
}

// accepts reports whether char represents the ASCII character c of the pattern.
func (p *pattern) accepts(c byte, char rune) bool {
	return char == rune(c) || char == rune(p.alternative(c))
}

// character returns the character at index i of the pattern and its length in bytes. A byte that is not valid UTF-8
// counts as a character.
func (p *pattern) character(i int) (char rune, size int) {
	if c := p.text[i]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	char, size = utf8.DecodeRune(p.text[i:])
	if size == 1 {
		char = rune(p.text[i])
	}
	return char, size
}
