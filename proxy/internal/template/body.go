package template

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"strings"

	"golang.org/x/text/transform"

	"github.com/lectern-dev/lectern/shared/wire"
)

// Syntax says how values must be escaped in a body.
type Syntax uint8

// The syntaxes.
const (
	Text     Syntax = iota // text and XML: values are inserted unchanged
	JSON                   // values are escaped inside strings and unchanged elsewhere
	Form                   // values are form-encoded
	Verbatim               // nothing is inserted: placeholders stay text
)

// Part is a stretch of a body with one syntax.
type Part struct {
	Syntax Syntax
	Length int // in bytes
}

// SyntaxOf returns the syntax of a body of the media type. It reports false when values cannot be inserted into such a
// body. That includes character sets that change the meaning of ASCII bytes: no search would find values in the answer.
func SyntaxOf(contentType string) (Syntax, bool) {
	media, parameters, err := mime.ParseMediaType(contentType)
	if err != nil { // the unreadable parameter may be the character set
		return 0, false
	}
	switch strings.ToLower(parameters["charset"]) {
	case "", "utf-8", "utf8", "us-ascii", "iso-8859-1", "windows-1252":
	default:
		return 0, false
	}
	switch {
	case media == "application/json", media == "text/json", strings.HasSuffix(media, "+json"):
		return JSON, true
	case media == "application/x-www-form-urlencoded":
		return Form, true
	case strings.HasPrefix(media, "text/"), media == "application/xml", strings.HasSuffix(media, "+xml"):
		return Text, true
	}
	return 0, false
}

// Body is a transform.Transformer that replaces the placeholders of a body with values. Its result does not depend on
// how the input is cut into chunks. It holds back at most the beginning of a placeholder.
type Body struct {
	parts  []Part
	values map[string]written

	rest      []Part // after the current part
	syntax    Syntax // of the current part
	left      int    // its bytes that are not read yet
	pending   []byte // the part of a value that is not yet written
	inString  bool   // JSON: the text so far ends inside a string
	backslash bool   // JSON: the string so far ends in a backslash that escapes the next character
}

// written is a value as it appears in text, in a JSON string, and in a form.
type written struct{ plain, inString, inForm []byte }

var _ transform.Transformer = (*Body)(nil)

// NewBody returns a Body that replaces the placeholders of the parts by the values with their ids. The parts must be as
// long as the body. Transform fails on any other id, so callers find the ids first with [Examine].
func NewBody(parts []Part, values map[string][]byte) *Body {
	b := &Body{parts: parts, values: make(map[string]written, len(values))}
	for id, v := range values {
		b.values[id] = written{plain: v, inString: wire.AppendTextPart(nil, v), inForm: AppendForm(nil, v)}
	}
	b.Reset()
	return b
}

// Reset begins a new body.
func (b *Body) Reset() {
	b.rest, b.left, b.pending = b.parts, 0, nil
	b.inString, b.backslash = false, false
}

// advance goes to the part of the next byte.
func (b *Body) advance() {
	for b.left == 0 && len(b.rest) > 0 {
		b.syntax, b.left, b.rest = b.rest[0].Syntax, b.rest[0].Length, b.rest[1:]
		b.inString, b.backslash = false, false
	}
}

// written returns the form of a value at the current place.
func (b *Body) written(w written) []byte {
	switch {
	case b.syntax == Form:
		return w.inForm
	case b.inString:
		return w.inString
	}
	return w.plain
}

// Transform implements transform.Transformer.
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
		b.pass(part[:n])
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
			b.pending = b.written(w)
			b.backslash = false
		}
	}
}

// next returns the length of the text before the first placeholder of part, and the placeholder's id and length. more
// reports that the bytes after the text may become a placeholder. ends reports that the part ends there.
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

// pass updates the JSON state for text that has been copied.
func (b *Body) pass(text []byte) {
	if b.syntax != JSON {
		return
	}
	for len(text) > 0 {
		switch {
		case !b.inString:
			i := bytes.IndexByte(text, '"')
			if i < 0 {
				return
			}
			b.inString, text = true, text[i+1:]
		case b.backslash:
			b.backslash, text = false, text[1:]
		default:
			i := 0
			for i < len(text) && text[i] != '"' && text[i] != '\\' {
				i++
			}
			if i == len(text) {
				return
			}
			b.inString, b.backslash = text[i] == '\\', text[i] == '\\'
			text = text[i+1:]
		}
	}
}

// MaxIDs bounds the different ids that a body may name. No endpoint can have more credentials.
const MaxIDs = 256

// Survey lists the placeholders of a body before values are inserted. It is incomplete when it has more than MaxIDs ids.
type Survey struct {
	IDs  []string        // of the placeholders, each once, in order; at most MaxIDs+1
	uses map[string]*use // by id
	size int64
}

// use counts the placeholders of an id by the forms of [written], and their bytes.
type use struct{ plain, inString, inForm, bytes int64 }

// Examine finds the placeholders of a whole body, which is as long as its parts. It stops after MaxIDs+1 different ids.
func Examine(parts []Part, body []byte) Survey {
	s := Survey{uses: map[string]*use{}, size: int64(len(body))}
	at := Body{rest: parts}
	for len(body) > 0 && len(s.IDs) <= MaxIDs {
		at.advance()
		id, length, text, _ := at.next(body[:at.left], true)
		at.pass(body[:text])
		at.left -= text + length
		body = body[text+length:]
		if length == 0 {
			continue
		}
		u := s.uses[string(id)]
		if u == nil {
			u = &use{}
			s.IDs = append(s.IDs, string(id))
			s.uses[string(id)] = u
		}
		switch {
		case at.syntax == Form:
			u.inForm++
		case at.inString:
			u.inString++
		default:
			u.plain++
		}
		u.bytes += int64(length)
		at.backslash = false
	}
	return s
}

// Size returns the body's length in bytes after b has inserted the values.
func (s Survey) Size(b *Body) int64 {
	size := s.size
	for id, u := range s.uses {
		w := b.values[id]
		size += u.plain*int64(len(w.plain)) + u.inString*int64(len(w.inString)) + u.inForm*int64(len(w.inForm)) - u.bytes
	}
	return size
}
