package template

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/text/transform"

	"github.com/lectern-dev/lectern/shared/wire"
)

// Part is a stretch of a body with one Media: the whole body, the content of a multipart part, or the text in between.
type Part struct {
	Media  Media
	Length int    // in bytes
	Name   string // of the part in a multipart body; "" for none, or for one that readers may read differently
}

// Body is a transform.Transformer that replaces the placeholders of a body with values. The output of a Body does not
// depend on how the input is cut into chunks. A Body holds back at most the beginning of a placeholder.
type Body struct {
	parts  []Part
	values map[string]written

	rest    []Part // after the current part
	syntax  Syntax // of the current part
	left    int    // its bytes that are not read yet
	pending []byte // the part of a value that is not yet written
}

// written holds the escaped forms of one value, by the Syntax of the body. For Verbatim there is no form.
type written [Verbatim][]byte

var _ transform.Transformer = (*Body)(nil)

// NewBody returns a Body that replaces the placeholders in the parts. values holds the value of each id. The parts must
// be as long as the body together. Transform fails on an id without a value, so the caller finds the ids with [Examine]
// first.
func NewBody(parts []Part, values map[string][]byte) *Body {
	b := &Body{parts: parts, values: make(map[string]written, len(values))}
	for id, v := range values {
		b.values[id] = written{Text: v, XML: v, JSON: wire.AppendTextPart(nil, v), Form: AppendForm(nil, v)}
	}
	b.Reset()
	return b
}

// Reset prepares the Body for another pass over the body, from the first part.
func (b *Body) Reset() { b.rest, b.left, b.pending = b.parts, 0, nil }

// advance makes the part of the next byte the current part. After the last part, b.left stays 0.
func (b *Body) advance() {
	for b.left == 0 && len(b.rest) > 0 {
		b.syntax, b.left, b.rest = b.rest[0].Media.Syntax, b.rest[0].Length, b.rest[1:]
	}
}

// Transform copies src to dst, as a transform.Transformer, and writes values in place of the placeholders. Transform
// fails on an id without a value, and on a body that is longer than its parts.
func (b *Body) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for {
		if len(b.pending) > 0 {
			n := copy(dst[nDst:], b.pending)
			nDst += n
			if b.pending = b.pending[n:]; len(b.pending) > 0 {
				return nDst, nSrc, transform.ErrShortDst
			}
		}
		if nSrc == len(src) {
			return nDst, nSrc, nil
		}
		if b.advance(); b.left == 0 {
			return nDst, nSrc, errors.New("template: the body is longer than its parts")
		}
		part := src[nSrc:min(len(src), nSrc+b.left)]
		id, length, text, more := b.next(part, atEOF || len(part) == b.left)
		n := copy(dst[nDst:], part[:text])
		nDst += n
		nSrc += n
		b.left -= n
		switch {
		case n < text:
			return nDst, nSrc, transform.ErrShortDst
		case more:
			return nDst, nSrc, transform.ErrShortSrc
		case length > 0:
			w, ok := b.values[string(id)]
			if !ok {
				return nDst, nSrc, fmt.Errorf("template: no value for %s", id)
			}
			nSrc += length
			b.left -= length
			b.pending = w[b.syntax]
		}
	}
}

// next returns the length of the text before the first placeholder of part, and the placeholder's id and length. For no
// placeholder, length is 0. more reports that the bytes after the text may become a placeholder. ends means that no
// more bytes of the part follow.
func (b *Body) next(part []byte, ends bool) (id []byte, length, text int, more bool) {
	for at := 0; ; at++ {
		i := bytes.IndexByte(part[at:], '{')
		if i < 0 || b.syntax == Verbatim {
			return nil, 0, len(part), false
		}
		at += i
		if at+1 < len(part) && part[at+1] != '{' {
			continue
		}
		id, length, short := scan(part[at:])
		switch {
		case length > 0:
			return id, length, at, false
		case short && !ends:
			return nil, 0, at, true
		}
	}
}
