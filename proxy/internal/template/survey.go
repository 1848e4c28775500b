package template

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/proxy/secret"
)

// MaxIDs bounds the different ids that a body may name. The manifest of an endpoint can name no more credentials.
const MaxIDs = 256

// Survey lists the placeholders of a body before values are inserted. A Survey with more than MaxIDs ids is incomplete.
type Survey struct {
	IDs  []string // of the placeholders, each once, in order; at most MaxIDs+1
	uses map[string]*use
	size int64
}

// use holds what a Survey knows about the placeholders of one id: their number by syntax, their bytes and their paths.
type use struct {
	by    [Verbatim]int64
	bytes int64
	paths []string // each once; at most MaxBodyPaths+1
	// anywhere reports that paths contains a path, or a number of paths, that no credential can name. Further paths
	// change nothing, and are left out.
	anywhere bool
}

// Paths returns the places of the placeholders of an id in IDs, each path once. In a JSON body, the path is the JSON
// pointer of a string. In a form, the path is the name of a field or of a part. The path is "" in the name of a JSON
// member or of a field, and in other text. The path is also "" where readers may find different names. The list ends
// early at a path that no credential names: "", or the path after secret.MaxBodyPaths others.
func (s Survey) Paths(id string) []string { return s.uses[id].paths }

// OpenEscape is an incomplete escape that directly precedes a placeholder; see [Dangling].
type OpenEscape string

// Error returns a message that quotes the escape.
func (e OpenEscape) Error() string { return "template: a placeholder follows " + string(e) }

// Examine finds the placeholders of a whole body, which is as long as its parts, and lists at most MaxIDs+1 different
// ids. The error is an [Unfit] if a part is not what its Media says, or an [OpenEscape].
func Examine(parts []Part, body []byte) (Survey, error) {
	s := Survey{uses: map[string]*use{}, size: int64(len(body))}
	for _, p := range parts {
		text := body[:p.Length]
		body = body[p.Length:]
		if p.Media.Syntax == Verbatim || len(text) == 0 {
			continue
		}
		if err := p.Media.check(text); err != nil {
			return s, err
		}
		if escape := Dangling(text); escape != "" {
			return s, OpenEscape(escape)
		}
		if err := s.examine(p, text); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *Survey) examine(p Part, text []byte) error {
	switch {
	case p.Media.Syntax == JSON:
		return s.examineJSON(p, text)
	case p.Media.Syntax == Form && p.Name == "":
		s.examineForm(text)
	default:
		s.add(p.Media.Syntax, text, func() string { return p.Name })
	}
	return nil
}

// add counts the placeholders of a text, up to MaxIDs+1 ids. The function path returns the path that all of them have,
// and add calls path at most once.
func (s *Survey) add(syntax Syntax, text []byte, path func() string) {
	path = sync.OnceValue(path)
	for len(s.IDs) <= MaxIDs {
		from, to, id, ok := Find(text)
		if !ok {
			return
		}
		text = text[to:]
		u := s.uses[string(id)]
		if u == nil {
			u = &use{}
			s.IDs = append(s.IDs, string(id))
			s.uses[string(id)] = u
		}
		u.by[syntax]++
		u.bytes += int64(to - from)
		if u.anywhere {
			continue
		}
		at := path()
		if !slices.Contains(u.paths, at) {
			u.paths = append(u.paths, at)
		}
		u.anywhere = at == "" || len(u.paths) > secret.MaxBodyPaths
	}
}

func nowhere() string { return "" }

// examineForm counts the placeholders of a form. Some readers end a field at ";", so the path of a field that contains
// ";" is "".
func (s *Survey) examineForm(text []byte) {
	for field := range bytes.SplitSeq(text, []byte("&")) {
		name, value, _ := bytes.Cut(field, []byte("="))
		s.add(Form, name, nowhere)
		path := nowhere
		if plain, err := url.QueryUnescape(string(name)); err == nil && !bytes.Contains(field, []byte(";")) {
			path = func() string { return plain }
		}
		s.add(Form, value, path)
	}
}

// examineJSON counts the placeholders of a JSON text. The error is an Unfit for text that is not one JSON value, and
// for repeated names of members. Outside strings, a placeholder is not valid JSON.
func (s *Survey) examineJSON(p Part, text []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(text))
	at := position{text: text, decoder: d}
	for {
		depth := d.StackDepth()
		in, n := d.StackIndex(depth)
		if depth == 0 && n > 0 {
			break
		}
		if d.PeekKind() != '"' {
			if _, err := d.ReadToken(); err != nil {
				return unfitJSON(d)
			}
			continue
		}
		literal, err := d.ReadValue()
		if err != nil {
			return unfitJSON(d)
		}
		switch {
		case in == '{' && n%2 == 0:
			at.enter(depth, int(d.InputOffset())-len(literal), len(literal))
			s.add(JSON, literal, nowhere)
		case p.Name != "":
			s.add(JSON, literal, func() string { return p.Name })
		default:
			s.add(JSON, literal, at.pointer)
		}
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return unfitJSON(d)
	}
	return nil
}

func unfitJSON(d *jsontext.Decoder) error {
	return Unfit(fmt.Sprintf("is not one JSON value without repeated names (byte %d); a placeholder stands inside a string", d.InputOffset()))
}

// position is the position of a decoder in a JSON text, with the names of the members that the decoder is in.
type position struct {
	text    []byte
	decoder *jsontext.Decoder
	names   [][2]int // by depth, begin and length of the name of the current member
}

// enter stores the range of a member's name in the text, when the decoder has read the name at a depth.
func (p *position) enter(depth, begin, length int) {
	for len(p.names) <= depth {
		p.names = append(p.names, [2]int{})
	}
	p.names[depth] = [2]int{begin, length}
}

// pointer returns the JSON pointer of the value that the decoder read last (RFC 6901). pointer returns "" when the JSON
// pointer is longer than a credential can name.
func (p *position) pointer() string {
	var pointer jsontext.Pointer
	for depth := 1; depth <= p.decoder.StackDepth(); depth++ {
		kind, n := p.decoder.StackIndex(depth)
		token := strconv.FormatInt(n-1, 10)
		if kind == '{' {
			name := p.text[p.names[depth][0]:][:p.names[depth][1]]
			if len(name) > 6*secret.MaxBodyPath { // no escape has more bytes
				return ""
			}
			plain, err := jsontext.AppendUnquote(nil, name)
			if err != nil {
				return "" // cannot happen: the decoder has read it
			}
			token = string(plain)
		}
		if pointer = pointer.AppendToken(token); len(pointer) > secret.MaxBodyPath {
			return ""
		}
	}
	return string(pointer)
}

// Size returns the body's length in bytes after b has inserted the values. The Survey must be complete.
func (s Survey) Size(b *Body) int64 {
	size := s.size
	for id, u := range s.uses {
		w := b.values[id]
		for syntax, n := range u.by {
			size += n * int64(len(w[syntax]))
		}
		size -= u.bytes
	}
	return size
}
