package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/shared/apierr"
)

// maxFields is how many fields a record may have. The parser marks each field that it has seen by a bit of one
// uint64.
const maxFields = 64

// shape describes the fields of one kind of record, and is shared by all parsers of the kind.
type shape[T any] struct {
	fields   []Field[T]
	quoted   []string // names as senders usually write them in JSON
	byName   map[string]int
	required uint64
	names    string // all, for messages
}

// newShape returns the shape of records with the given fields. No fields, too many fields, or two fields with the same
// name are a mistake in the program, and newShape panics.
func newShape[T any](fields []Field[T]) *shape[T] {
	if len(fields) == 0 || len(fields) > maxFields {
		panic(fmt.Sprintf("ingest: a record of %d fields; allowed: 1 to %d", len(fields), maxFields))
	}
	s := &shape[T]{fields: fields, byName: make(map[string]int, len(fields))}
	var names []string
	for i, f := range fields {
		if _, twice := s.byName[f.name]; twice {
			panic("ingest: field " + f.name + " comes twice")
		}
		s.byName[f.name] = i
		s.quoted = append(s.quoted, strconv.Quote(f.name))
		names = append(names, f.name)
		if !f.nullable {
			s.required |= 1 << i
		}
	}
	s.names = strings.Join(names, ", ")
	return s
}

// parser reads lines into records. Only one goroutine may use a parser.
type parser[T any] struct {
	shape   *shape[T]
	check   func(*T) *Fault // may be nil
	input   bytes.Buffer
	decoder *jsontext.Decoder
	scratch scratch
}

func newParser[T any](s *shape[T], check func(*T) *Fault) *parser[T] {
	p := &parser[T]{shape: s, check: check}
	p.decoder = jsontext.NewDecoder(&p.input)
	return p
}

// parse reads one line into record and sets every field. The record shares no memory with the line. After a fault the
// record must not be used.
func (p *parser[T]) parse(line []byte, record *T) *Fault {
	p.input = *bytes.NewBuffer(line) // the decoder reads it in place
	// The loop below finds names that come twice, for less.
	p.decoder.Reset(&p.input, jsontext.AllowDuplicateNames(true))
	if p.decoder.PeekKind() != '{' {
		if _, err := p.decoder.ReadValue(); err != nil && !errors.Is(err, io.EOF) {
			return notJSON(err)
		}
		return &Fault{InvalidJSON, "The line is not a JSON object."}
	}
	if _, err := p.decoder.ReadToken(); err != nil {
		return notJSON(err)
	}
	// One allocation that all fields of the record share.
	text := string(line)
	var seen uint64
	for next := 0; p.decoder.PeekKind() != '}'; {
		name, err := p.decoder.ReadValue()
		if err != nil {
			return notJSON(err)
		}
		i, fault := p.field(name, next)
		if fault != nil {
			return fault
		}
		if seen&(1<<i) != 0 {
			return &Fault{InvalidJSON, fmt.Sprintf("Field %q comes twice.", p.shape.fields[i].name)}
		}
		seen |= 1 << i
		next = i + 1
		raw, err := p.decoder.ReadValue()
		if err != nil {
			return notJSON(err)
		}
		end := int(p.decoder.InputOffset())
		v := value{raw: raw, text: text[end-len(raw) : end]}
		if fault := p.set(&p.shape.fields[i], v, record); fault != nil {
			return fault
		}
	}
	if _, err := p.decoder.ReadToken(); err != nil {
		return notJSON(err)
	}
	if _, err := p.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return &Fault{InvalidJSON, "The line goes on after its JSON object."}
	}
	return p.finish(seen, record)
}

// field returns the index of the field with the given JSON name. field looks at the index next first, which is right
// if the sender keeps the fields in the order of the shape.
func (p *parser[T]) field(name jsontext.Value, next int) (int, *Fault) {
	if next < len(p.shape.quoted) && string(name) == p.shape.quoted[next] {
		return next, nil
	}
	unquoted, err := jsontext.AppendUnquote(p.scratch.bytes[:0], name)
	if err != nil {
		return 0, notJSON(err)
	}
	p.scratch.bytes = unquoted
	i, ok := p.shape.byName[string(unquoted)]
	if !ok {
		return 0, &Fault{UnknownField, fmt.Sprintf("Field %q is not known; allowed: %s.", apierr.Shown(string(unquoted)), p.shape.names)}
	}
	return i, nil
}

func (p *parser[T]) set(f *Field[T], v value, record *T) *Fault {
	if v.raw.Kind() != 'n' {
		return f.read(&p.scratch, v, record)
	}
	if !f.nullable {
		return BadField(f.name, "null", "a value, as it is required")
	}
	f.clear(record)
	return nil
}

// finish checks that no required field is missing, clears the fields that are absent, and checks the record as a
// whole. seen has a bit for each field in the line.
func (p *parser[T]) finish(seen uint64, record *T) *Fault {
	if missing := p.shape.required &^ seen; missing != 0 {
		for i := range p.shape.fields {
			if missing&(1<<i) != 0 {
				return Missing(p.shape.fields[i].name)
			}
		}
	}
	for i := range p.shape.fields {
		if seen&(1<<i) == 0 {
			p.shape.fields[i].clear(record)
		}
	}
	if p.check != nil {
		return p.check(record)
	}
	return nil
}

// notJSON returns the Fault of a line that is not valid JSON. err is the error of the decoder, which says where the
// line is wrong.
func notJSON(err error) *Fault {
	reason := strings.TrimPrefix(err.Error(), "jsontext: ")
	if errors.Is(err, io.ErrUnexpectedEOF) {
		reason = "it ends in the middle"
	}
	return &Fault{InvalidJSON, "The line is not valid JSON: " + apierr.Shown(reason) + "."}
}

// scratch is a buffer in which a parser replaces the escapes of JSON strings. The parser uses the buffer again for
// each field.
type scratch struct {
	bytes []byte
}

// text returns the text of a JSON string that must follow rule. name is the name of the field, for the Fault. The
// result may share memory with v.text.
func (s *scratch) text(name string, v value, rule Rule) (string, *Fault) {
	if v.raw.Kind() != '"' {
		return "", BadField(name, v.text, rule.allowed)
	}
	text, b := v.text[1:len(v.text)-1], v.raw[1:len(v.raw)-1]
	if bytes.IndexByte(v.raw, '\\') >= 0 {
		unquoted, err := jsontext.AppendUnquote(s.bytes[:0], v.raw)
		if err != nil {
			return "", notJSON(err)
		}
		s.bytes = unquoted
		text, b = string(unquoted), unquoted
	}
	if !rule.ok(text, b) {
		return "", BadField(name, v.text, rule.allowed)
	}
	return text, nil
}

// texts returns the elements of a JSON array of strings, each of which must follow rule. name is the name of the
// field, for the Fault.
func (s *scratch) texts(name string, v value, rule Rule) ([]string, *Fault) {
	bad := func() ([]string, *Fault) { return nil, BadField(name, v.text, "an array, each "+rule.allowed) }
	if v.raw.Kind() != '[' {
		return bad()
	}
	input := slices.Clone(v.raw)
	decoder := jsontext.NewDecoder(bytes.NewBuffer(input))
	if _, err := decoder.ReadToken(); err != nil {
		return nil, notJSON(err)
	}
	texts := []string{}
	for decoder.PeekKind() != ']' {
		raw, err := decoder.ReadValue()
		if err != nil {
			return nil, notJSON(err)
		}
		text, fault := s.text(name, value{raw: raw, text: string(raw)}, rule)
		if fault != nil {
			return bad()
		}
		texts = append(texts, text)
	}
	return texts, nil
}
