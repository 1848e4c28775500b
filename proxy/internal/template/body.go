package template

import (
	"bytes"
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
	Text Syntax = iota // text and XML: values are inserted unchanged
	JSON               // values are escaped inside strings and unchanged elsewhere
	Form               // values are form-encoded
)

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
	syntax Syntax
	values map[string]written

	pending   []byte // the part of a value that is not yet written
	inString  bool   // JSON: the text so far ends inside a string
	backslash bool   // JSON: the string so far ends in a backslash that escapes the next character
}

// written is a value as it appears outside and inside a JSON string. Only JSON uses inString.
type written struct{ plain, inString []byte }

var _ transform.Transformer = (*Body)(nil)

// NewBody returns a Body that replaces placeholders by the values with their ids. Transform fails on any other id, so
// callers find the ids first with [Examine].
func NewBody(syntax Syntax, values map[string][]byte) *Body {
	b := &Body{syntax: syntax, values: make(map[string]written, len(values))}
	for id, v := range values {
		w := written{plain: v, inString: v}
		switch syntax {
		case JSON:
			w.inString = wire.AppendTextPart(nil, v)
		case Form:
			w.plain = AppendForm(nil, v)
		}
		b.values[id] = w
	}
	return b
}

// Reset begins a new body.
func (b *Body) Reset() { b.pending, b.inString, b.backslash = nil, false, false }

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
		id, length, text, more := next(src[nSrc:], atEOF)
		n := copy(dst[nDst:], src[nSrc:nSrc+text])
		b.pass(src[nSrc : nSrc+n])
		nDst += n
		nSrc += n
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
			b.pending = w.plain
			if b.inString {
				b.pending = w.inString
			}
			b.backslash = false
		}
	}
}

// next returns the length of the text before the first placeholder of b, and the placeholder's id and length. more
// reports that the bytes after the text may become a placeholder.
func next(b []byte, atEOF bool) (id []byte, length, text int, more bool) {
	for at := 0; ; at++ {
		i := bytes.IndexByte(b[at:], '{')
		if i < 0 {
			return nil, 0, len(b), false
		}
		at += i
		if at+1 < len(b) && b[at+1] != '{' {
			continue
		}
		id, length, short := scan(b[at:])
		switch {
		case length > 0:
			return id, length, at, false
		case short && !atEOF:
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

// use counts the placeholders of an id outside and inside JSON strings, and their bytes.
type use struct{ plain, inString, bytes int64 }

// Examine finds the placeholders of a whole body. It stops after MaxIDs+1 different ids.
func Examine(syntax Syntax, body []byte) Survey {
	s := Survey{uses: map[string]*use{}, size: int64(len(body))}
	at := Body{syntax: syntax}
	for len(body) > 0 && len(s.IDs) <= MaxIDs {
		id, length, text, _ := next(body, true)
		at.pass(body[:text])
		body = body[text:]
		if length == 0 {
			break
		}
		u := s.uses[string(id)]
		if u == nil {
			u = &use{}
			s.IDs = append(s.IDs, string(id))
			s.uses[string(id)] = u
		}
		if at.inString {
			u.inString++
		} else {
			u.plain++
		}
		u.bytes += int64(length)
		body = body[length:]
		at.backslash = false
	}
	return s
}

// Size returns the body's length in bytes after b has inserted the values.
func (s Survey) Size(b *Body) int64 {
	size := s.size
	for id, u := range s.uses {
		w := b.values[id]
		size += u.plain*int64(len(w.plain)) + u.inString*int64(len(w.inString)) - u.bytes
	}
	return size
}
