// Package scrub finds and replaces secrets in the answers of targets. A Matcher finds a secret
//
//   - unchanged, in base64 of either alphabet at any alignment, also folded into indented lines, and in hexadecimal
//     digits;
//   - in base64 of its form in a URL, a form or JSON;
//   - in base64 or hexadecimal digits of its form in ISO 8859-1;
//   - in base64 that is encoded once more, as base64 or as hexadecimal digits;
//   - with any of its characters percent-encoded, escaped by a backslash (JSON, JavaScript), as a character reference
//     (HTML, XML), or by several of these nested;
//   - with non-ASCII characters in UTF-8, in ISO 8859-1, and as UTF-8 that a program mistook for ISO 8859-1
//     or windows-1252.
//
// A Stream replaces each stretch of text that is part of a secret with "[redacted]". The chunks in which the text
// arrives do not change the result. At the end of a text, a Stream also replaces the beginning of a secret, if the
// beginning reveals at least [secret.MinSearchable] bytes.
//
// A Stream holds back the end of the text as long as a secret may begin there. A Stream also holds back letters, digits
// and other token characters at the end, whether or not they begin a secret. Otherwise a client whose text the target
// echoes could guess a secret character by character: the client would see which guesses are held back.
//
// The package does not find a secret that a target hashed, reversed, encrypted or compressed. Nor does the package find
// a secret whose escaped form is more than [maxGrowth] times as long as the longest secret of the Matcher.
package scrub

import (
	"unicode/utf8"

	"golang.org/x/text/transform"

	"github.com/lectern-dev/lectern/proxy/secret"
)

// maxGrowth is the greatest length of an escaped secret that a Matcher finds, as a multiple of the length of its
// longest secret.
const maxGrowth = 12

// Matcher finds a fixed set of secrets in texts. A Matcher is immutable, and safe for concurrent use.
type Matcher struct {
	patterns []*pattern
	starts   [utf8.RuneSelf][]*pattern // by their first character
	foreign  []*pattern                // the patterns whose first character is not ASCII
	pairs    [1024]uint64              // a bitmap of the byte pairs that a secret can begin with
	first    [256]bool                 // the bytes that a secret as it is can begin with
	window   int                       // how many bytes decide whether a secret begins at the first of them
}

// NewMatcher returns a Matcher that finds the given secrets. Each secret must have [secret.MinSearchable] to
// [secret.MaxBytes] bytes.
func NewMatcher(secrets ...[]byte) *Matcher {
	m := &Matcher{}
	for _, s := range secrets {
		m.patterns = append(m.patterns, patternsOf(s)...)
		m.window = max(m.window, maxGrowth*len(s))
	}
	for _, p := range m.patterns {
		m.enter(p)
	}
	return m
}

// enter adds p to the index of patterns by first character, and to the tables of the first bytes and byte pairs of
// secrets.
func (m *Matcher) enter(p *pattern) {
	c := p.text[0]
	if c >= utf8.RuneSelf {
		m.foreign = append(m.foreign, p)
		starts := []byte{c, 0xC0 | c>>6} // see stepBytes
		if char, _ := p.character(0); char < 256 {
			starts = append(starts, byte(char))
		}
		for _, first := range starts {
			m.first[first] = m.first[first] || p.kind == plain
			for second := range 256 {
				m.admit(first, byte(second))
			}
			m.admitEscapes(first)
		}
		return
	}
	for _, first := range []byte{c, p.alternative(c)} {
		m.first[first] = m.first[first] || p.kind == plain
		if len(m.starts[first]) == 0 || m.starts[first][len(m.starts[first])-1] != p {
			m.starts[first] = append(m.starts[first], p)
		}
		for second := range 256 {
			if p.canFollow(byte(second)) {
				m.admit(first, byte(second))
			}
		}
		m.admitEscapes(first)
	}
}

// canFollow reports whether c can follow the first character of p in a text.
func (p *pattern) canFollow(c byte) bool {
	second := p.text[1]
	switch {
	case beginsEscape(rune(c)):
		return true
	case second >= utf8.RuneSelf:
		return c >= utf8.RuneSelf
	}
	return p.accepts(second, rune(c)) || p.kind == inBase && isLineBreak(rune(c))
}

// admitEscapes adds to m.pairs the byte pairs with which an escaped form of c can begin.
func (m *Matcher) admitEscapes(c byte) {
	m.admitPercents(c, '%', '\\', '&')
	for _, second := range []byte(`ux%\&`) {
		m.admit('\\', second)
	}
	if !isAlphanumeric(rune(c)) {
		m.admit('\\', c)
		for letter := byte('a'); letter <= 'z'; letter++ {
			if control(rune(letter)) == rune(c) {
				m.admit('\\', letter)
			}
			m.admit('&', letter)
			m.admit('&', letter-'a'+'A')
		}
	}
	// An escape may be escaped: &amp; &bsol; &percnt;
	for _, second := range []byte(`#aAbp%\&`) {
		m.admit('&', second)
	}
}

// admitPercents adds to m.pairs the byte pairs with which percent-encoded forms of the given bytes can begin.
func (m *Matcher) admitPercents(bytes ...byte) {
	const upper, lower = "0123456789ABCDEF", "0123456789abcdef"
	for _, c := range bytes {
		m.admit('%', upper[c>>4])
		m.admit('%', lower[c>>4])
	}
	for _, second := range []byte(`%\&`) {
		m.admit('%', second)
	}
}

func (m *Matcher) admit(first, second byte) {
	i := uint(first)<<8 | uint(second)
	m.pairs[i>>6] |= 1 << (i & 63)
}

// next returns the first index, not before at, at which a secret may begin in text, or len(text) for none. next tests
// pairs of bytes only: a test of single bytes first would cost too many mispredicted branches. next never returns the
// index of the last byte, because a secret is longer than one byte.
func (m *Matcher) next(text []byte, at int) int {
	if at >= len(text) {
		return len(text)
	}
	pair := uint16(text[at])
	rest := text[at+1:]
	for len(rest) >= 4 {
		a := pair<<8 | uint16(rest[0])
		b := a<<8 | uint16(rest[1])
		c := b<<8 | uint16(rest[2])
		d := c<<8 | uint16(rest[3])
		if (m.pairs[a>>6]>>(a&63)|m.pairs[b>>6]>>(b&63)|m.pairs[c>>6]>>(c&63)|m.pairs[d>>6]>>(d&63))&1 != 0 {
			break
		}
		pair, rest = d, rest[4:]
	}
	for i, c := range rest {
		pair = pair<<8 | uint16(c)
		if m.pairs[pair>>6]>>(pair&63)&1 != 0 {
			return len(text) - len(rest) - 1 + i
		}
	}
	return len(text)
}

// String returns text with each secret replaced by "[redacted]", and reports whether text contained a secret.
func (m *Matcher) String(text string) (string, bool) {
	clean, found := m.Bytes([]byte(text))
	if found == 0 {
		return text, false
	}
	return string(clean), true
}

// Bytes returns a whole text with each secret replaced by "[redacted]", and the number of stretches that Bytes
// replaced. If found is 0, clean is text itself and not a copy.
func (m *Matcher) Bytes(text []byte) (clean []byte, found int) {
	for at := m.next(text, 0); at < len(text); at = m.next(text, at+1) {
		if s := NewStream(m); s.match(text, at, true) > 0 {
			clean, _, err := transform.Bytes(s, text)
			if err != nil {
				return []byte(secret.Redacted), 1 // cannot happen: Transform needs no more input at the end of a text
			}
			return clean, s.Found()
		}
	}
	return text, 0
}

// Stream is a transform.Transformer that replaces the secrets in one text with "[redacted]". A Stream holds back at
// most [maxGrowth] times as many bytes as the longest secret has.
type Stream struct {
	m       *Matcher
	latest  func() *Matcher // nil: the Matcher stays
	covered int             // how many of the next bytes belong to a secret
	pending string          // the part of "[redacted]" that is not yet written
	found   int
}

var _ transform.Transformer = (*Stream)(nil)

// NewStream returns a Stream that replaces the secrets of m in one text.
func NewStream(m *Matcher) *Stream { return &Stream{m: m} }

// NewFollowingStream returns a Stream that replaces the secrets of the Matcher that latest returns. The Matcher may
// change while the text passes. The text that the Stream holds back is searched with the new Matcher.
func NewFollowingStream(latest func() *Matcher) *Stream { return &Stream{m: latest(), latest: latest} }

// Reset prepares the Stream for a new text, and sets the count of Found to 0.
func (s *Stream) Reset() { s.covered, s.pending, s.found = 0, "", 0 }

// Found returns how many stretches the Stream has replaced so far.
func (s *Stream) Found() int { return s.found }

// Transform copies src to dst without the secrets, as a transform.Transformer. Overlapping secrets become one
// "[redacted]".
func (s *Stream) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	if s.latest != nil {
		s.m = s.latest()
	}
	ready := s.ready(src, atEOF)
	for {
		if s.pending != "" {
			n := copy(dst[nDst:], s.pending)
			nDst += n
			if s.pending = s.pending[n:]; s.pending != "" {
				return nDst, nSrc, transform.ErrShortDst
			}
		}
		switch nSrc {
		case len(src):
			return nDst, nSrc, nil
		case ready:
			return nDst, nSrc, transform.ErrShortSrc
		}
		to := min(ready, s.m.next(src[:min(ready+1, len(src))], nSrc))
		dropped := min(s.covered, to-nSrc)
		s.covered -= dropped
		nSrc += dropped
		n := copy(dst[nDst:], src[nSrc:to])
		nDst += n
		nSrc += n
		if nSrc < to {
			return nDst, nSrc, transform.ErrShortDst
		}
		if to == ready {
			continue
		}
		if length := s.match(src, to, atEOF); length > 0 {
			if s.covered == 0 {
				s.pending = secret.Redacted
				s.found++
			}
			s.covered = max(s.covered, length)
		}
		if s.covered == 0 {
			if nDst == len(dst) {
				return nDst, nSrc, transform.ErrShortDst
			}
			dst[nDst] = src[to]
			nDst++
		} else {
			s.covered--
		}
		nSrc++
	}
}

// ready returns how many leading bytes of src Transform can process now, and len(src) at the end of the text. The bytes
// that follow may be the beginning of a secret.
func (s *Stream) ready(src []byte, atEOF bool) int {
	if atEOF {
		return len(src)
	}
	from := max(0, len(src)-s.m.window)
	return s.m.firstOpen(src, from, tokenStart(src, from))
}

// match returns the length of the longest secret that begins at index at of src, 0 for none. At the end of a text, the
// prefix of a secret counts too, as in [Matcher.match].
func (s *Stream) match(src []byte, at int, atEOF bool) int {
	t := text{bytes: src[at:min(at+s.m.window, len(src))]}
	last := atEOF && len(t.bytes) < s.m.window // a full window gives the same result whether or not the end is known
	return s.m.match(&t, last)
}
