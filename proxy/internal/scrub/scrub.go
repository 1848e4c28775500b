// Package scrub owns the search for secrets in what a target answers. A secret is found as it is,
// percent-encoded, with characters escaped as in JSON, any mixture of these, and inside base64 text of
// either alphabet at any of the three alignments, also where that is folded into lines. Each stretch of
// text that is part of a secret is replaced by "[redacted]", however the text is cut into chunks.
//
// It refuses to guess at what a target may have done to a secret beyond that: hashed, reversed,
// encrypted or compressed ones pass.
package scrub

import (
	"golang.org/x/text/transform"

	"github.com/lectern-dev/lectern/proxy/secret"
)

// Matcher finds secrets. It does not change once it is made, and may be used from many goroutines.
type Matcher struct {
	patterns []pattern
	first    [256]bool    // bytes that a pattern can begin with
	pairs    [1024]uint64 // and pairs of bytes, as bits
}

// NewMatcher returns a Matcher of secrets, each of [secret.MinSearchable] to [secret.MaxBytes] bytes. The longer
// a secret is, the more text a stream may have to hold back.
func NewMatcher(secrets ...[]byte) *Matcher {
	m := &Matcher{}
	for _, s := range secrets {
		m.patterns = append(m.patterns, patternsOf(s)...)
	}
	for i := range m.patterns {
		m.admit(&m.patterns[i])
	}
	return m
}

// Zero overwrites what was made of the secrets. Nothing is found any more.
func (m *Matcher) Zero() {
	for i := range m.patterns {
		clear(m.patterns[i].units)
	}
	m.patterns = nil
	clear(m.first[:])
	clear(m.pairs[:])
}

// admit notes which two bytes p can begin with, so that others need not be looked at.
func (m *Matcher) admit(p *pattern) {
	u := &p.units[0]
	starts := []byte{u.raw[0]}
	if u.alt != 0 {
		starts = append(starts, u.alt)
	}
	for _, c := range starts {
		for second := range 256 {
			if p.canFollow(byte(second)) {
				m.pair(c, byte(second))
			}
		}
		m.pair('%', upper[c>>4])
		m.pair('%', lower[c>>4])
		for e := range 256 {
			if u.n == 1 && unescape(byte(e)) == c && c != 0 {
				m.pair('\\', byte(e))
			}
		}
	}
	m.pair('\\', 'u')
}

const (
	upper = "0123456789ABCDEF"
	lower = "0123456789abcdef"
)

// canFollow reports whether c can come after the first byte of p's first character, when that stands as it
// is.
func (p *pattern) canFollow(c byte) bool {
	if c == '%' {
		return true
	}
	if u := &p.units[0]; u.n > 1 {
		return c == u.raw[1]
	}
	if len(p.units) == 1 || c == '\\' {
		return true
	}
	u := &p.units[1]
	return c == u.raw[0] || c == u.alt && u.alt != 0 || p.lines && (c == '\r' || c == '\n')
}

func (m *Matcher) pair(a, b byte) {
	m.first[a] = true
	i := uint(a)<<8 | uint(b)
	m.pairs[i>>6] |= 1 << (i & 63)
}

// next returns the first place in text from at on where a pattern may begin, or len(text). Text is looked
// at by pairs alone: a table of single bytes before that would be mistaken too often for the processor to
// foresee.
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
	if m.first[text[len(text)-1]] {
		return len(text) - 1
	}
	return len(text)
}

// match reports whether any secret begins at the beginning of text, and where the longest ends.
func (m *Matcher) match(text []byte, atEOF bool) (int, outcome) {
	end, found := 0, no
	for i := range m.patterns {
		e, o := m.patterns[i].match(text, atEOF)
		switch o {
		case maybe:
			return 0, maybe
		case yes:
			end, found = max(end, e), yes
		}
	}
	return end, found
}

// String returns text without the secrets, and whether there were any.
func (m *Matcher) String(text string) (string, bool) {
	clean, found := m.Bytes([]byte(text))
	if found == 0 {
		return text, false
	}
	return string(clean), true
}

// Bytes returns a whole text without the secrets, and how many stretches were replaced: text itself when none
// was.
func (m *Matcher) Bytes(text []byte) (clean []byte, found int) {
	for at := m.next(text, 0); at < len(text); at = m.next(text, at+1) {
		if _, o := m.match(text[at:], true); o == yes {
			s := NewStream(m)
			clean, _, err := transform.Bytes(s, text)
			if err != nil {
				return []byte(secret.Redacted), 1 // cannot be: at its end a text is not too short
			}
			return clean, s.Found()
		}
	}
	return text, 0
}

// Stream replaces the secrets in one text as it streams by. It is a transform.Transformer and holds back
// only what may be the beginning of a secret.
type Stream struct {
	m       *Matcher
	covered int    // bytes to come that belong to a secret
	pending string // of "[redacted]", not yet given out
	found   int
}

var _ transform.Transformer = (*Stream)(nil)

// NewStream returns a Stream that searches with m.
func NewStream(m *Matcher) *Stream { return &Stream{m: m} }

// Reset begins a new text.
func (s *Stream) Reset() { s.covered, s.pending, s.found = 0, "", 0 }

// Found returns how many stretches were replaced so far.
func (s *Stream) Found() int { return s.found }

// Transform does what transform.Transformer says. Secrets that overlap are replaced as one stretch.
func (s *Stream) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for {
		if s.pending != "" {
			n := copy(dst[nDst:], s.pending)
			nDst += n
			if s.pending = s.pending[n:]; s.pending != "" {
				return nDst, nSrc, transform.ErrShortDst
			}
		}
		if nSrc == len(src) {
			return nDst, nSrc, nil
		}
		to := s.m.next(src, nSrc)
		dropped := min(s.covered, to-nSrc)
		s.covered -= dropped
		nSrc += dropped
		n := copy(dst[nDst:], src[nSrc:to])
		nDst += n
		nSrc += n
		if nSrc < to {
			return nDst, nSrc, transform.ErrShortDst
		}
		if to == len(src) {
			continue
		}
		end, o := s.m.match(src[to:], atEOF)
		switch {
		case o == maybe:
			return nDst, nSrc, transform.ErrShortSrc
		case o == yes:
			if s.covered == 0 {
				s.pending = secret.Redacted
				s.found++
			}
			s.covered = max(s.covered, end)
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
