package template

import (
	"bytes"
	"fmt"
	"mime"
	"strings"

	"golang.org/x/text/transform"

	"github.com/lectern-dev/lectern/shared/wire"
)

// Syntax is what a body is written in, as far as escaping goes.
type Syntax uint8

// The syntaxes.
const (
	Text Syntax = iota // values are put in as they are: text, XML
	JSON               // escaped inside strings, as they are elsewhere
	Form               // form-encoded
)

// SyntaxOf returns what a body of the media type is written in. False: values cannot be put into it. That includes
// character sets in which ASCII stands for something else: the target would answer with text that no search finds.
func SyntaxOf(contentType string) (Syntax, bool) {
	media, parameters, err := mime.ParseMediaType(contentType)
	if err != nil { // also a parameter that cannot be read: it may be the character set
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

// Body puts values into a body as it streams by. It is a transform.Transformer, gives the same result
// however its input is cut into chunks, and holds back no more than the beginning of a placeholder.
type Body struct {
	syntax Syntax
	values map[string]written

	pending   []byte // of a value, not yet given out
	inString  bool   // JSON: the text so far ends inside a string
	backslash bool   // JSON: and in that with a backslash that escapes what comes next
}

// written is a value as it is put in.
type written struct{ plain, inString []byte }

var _ transform.Transformer = (*Body)(nil)

// NewBody returns a Body that knows values by their ids. Placeholders of other ids are an error of
// Transform: they are to be found beforehand, by [Survey].
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

// Transform does what transform.Transformer says.
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

// next returns how much of b is text before the first placeholder, and that placeholder. More says that
// what follows the text may become one.
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

// pass notes what text means for what comes after it.
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

// MaxIDs bounds the different ids that a body may name. It is the most credentials that an endpoint may have.
const MaxIDs = 256

// Survey is what is known of a body before values are put into it. One with more than MaxIDs ids is not complete.
type Survey struct {
	IDs  []string        // of its placeholders, each once, in order; at most MaxIDs+1
	uses map[string]*use // by id
	size int64
}

// use is how often an id stands where, and how many bytes its placeholders are.
type use struct{ plain, inString, bytes int64 }

// Examine finds the placeholders of a whole body. It stops when it has found more than MaxIDs ids.
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

// Size returns how many bytes the body has once b has put the values in.
func (s Survey) Size(b *Body) int64 {
	size := s.size
	for id, u := range s.uses {
		w := b.values[id]
		size += u.plain*int64(len(w.plain)) + u.inString*int64(len(w.inString)) - u.bytes
	}
	return size
}
