package copies

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/fields"
)

// decoder decodes the changes of a feed. Texts and optional values of several changes share a piece of memory, which stays as
// long as one of them is used. So code that keeps a text for longer than a batch clones the text.
type decoder struct {
	input    bytes.Buffer
	tokens   *jsontext.Decoder
	unquoted []byte // the last text with escapes
	line     *object[feedChange]
	entry    *object[client.Entry]
	event    *object[client.ChangedEvent]
	texts    strings.Builder
	pointed  []string // texts that a change has a pointer to
	numbers  []int64  // numbers that a change has a pointer to
}

// feedChange has the members of a change in the feed. The members of a removal are next to those of the change.
type feedChange struct {
	Type      string               `json:"change"`
	Seq       int64                `json:"seq"`
	Entry     *client.Entry        `json:"entry"`
	Event     *client.ChangedEvent `json:"event"`
	EntryID   string               `json:"entry_id"`
	RemovedAt time.Time            `json:"removed_at"`
	Reason    string               `json:"reason"`
}

// object is a JSON object of the feed: the names of its members, also with quotes, and the record that receives the members.
type object[T any] struct {
	*fields.Buffer[T]
	names, quoted []string
}

func objectOf[T any]() *object[T] {
	o := &object[T]{Buffer: fields.NewBuffer[T](fields.Of[T]()), names: fields.Names[T]()}
	for _, name := range o.names {
		o.quoted = append(o.quoted, quoted(name))
	}
	return o
}

func newDecoder() *decoder {
	d := &decoder{line: objectOf[feedChange](), entry: objectOf[client.Entry](), event: objectOf[client.ChangedEvent]()}
	d.tokens = jsontext.NewDecoder(&d.input)
	return d
}

// change decodes a line of the feed. A change without the record that its type requires has no record.
func (d *decoder) change(line []byte) (client.Change, error) {
	d.input.Reset()
	d.input.Write(line)
	d.tokens.Reset(&d.input, jsontext.AllowDuplicateNames(true)) // members refuses duplicates of the names that it knows, in less time
	in := &d.line.Record
	if err := members(d, d.line); err != nil {
		return client.Change{}, err
	}
	if _, err := d.tokens.ReadToken(); !errors.Is(err, io.EOF) {
		return client.Change{}, cmp.Or(err, errors.New("more after the change"))
	}
	c := client.Change{Type: client.ChangeType(in.Type), Seq: in.Seq, Entry: in.Entry, Event: in.Event}
	if in.EntryID != "" {
		c.Removal = &client.Removal{EntryID: in.EntryID, RemovedAt: in.RemovedAt, Reason: client.RemovalReason(in.Reason)}
	}
	return c, nil
}

// members reads the next JSON object into the record of o. The server sends the members in the order of the names.
// Members in another order take more time, and members with other names are left out.
func members[T any](d *decoder, o *object[T]) error {
	if start, err := d.tokens.ReadToken(); err != nil || start.Kind() != '{' {
		return cmp.Or(err, errors.New("want an object"))
	}
	next, seen := 0, uint64(0)
	for d.tokens.PeekKind() == '"' {
		raw, err := d.tokens.ReadValue()
		if err != nil {
			return err
		}
		if next == len(o.names) || o.quoted[next] != string(raw) {
			name, err := d.unquote(raw)
			if err != nil {
				return err
			}
			next = slices.Index(o.names, string(name))
		}
		if next < 0 {
			next = 0
			if err := d.tokens.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if seen&(1<<next) != 0 {
			return fmt.Errorf("the member %s occurs twice", o.names[next])
		}
		if err := d.value(o.Pointers[next]); err != nil {
			return fmt.Errorf("%s: %w", o.names[next], err)
		}
		seen |= 1 << next
		next++
	}
	for i, to := range o.Pointers {
		if seen&(1<<i) == 0 {
			clearField(to)
		}
	}
	_, err := d.tokens.ReadToken()
	return err
}

// recordOf reads the next JSON value into the record of o, and returns a copy of the record; nil for null.
func recordOf[T any](d *decoder, o *object[T]) (*T, error) {
	if d.tokens.PeekKind() == 'n' {
		return nil, d.tokens.SkipValue()
	}
	if err := members(d, o); err != nil {
		return nil, err
	}
	return new(o.Record), nil
}

// value reads the next JSON value into the field that to points to. A text or an optional value that equals the one of the
// record before shares its memory.
func (d *decoder) value(to any) (err error) {
	switch to := to.(type) {
	case **client.Entry:
		*to, err = recordOf(d, d.entry)
		return err
	case **client.ChangedEvent:
		*to, err = recordOf(d, d.event)
		return err
	}
	raw, err := d.tokens.ReadValue()
	if err != nil {
		return err
	}
	if raw.Kind() == 'n' {
		clearField(to)
		return nil
	}
	var text []byte
	var number int64
	switch to := to.(type) {
	case *string:
		if text, err = d.unquote(raw); string(text) != *to {
			*to = d.copy(text)
		}
	case **string:
		if text, err = d.unquote(raw); *to == nil || string(text) != **to {
			*to = keep(&d.pointed, d.copy(text))
		}
	case *int64:
		*to, err = strconv.ParseInt(string(raw), 10, 64)
	case **int64:
		if number, err = strconv.ParseInt(string(raw), 10, 64); *to == nil || number != **to {
			*to = keep(&d.numbers, number)
		}
	case *time.Time:
		if text, err = d.unquote(raw); err == nil {
			err = to.UnmarshalText(text)
		}
	default:
		err = fmt.Errorf("no decoder for %T", to)
	}
	return err
}

// unquote returns the text of a JSON string, which is valid until the next call and until the decoder reads on.
func (d *decoder) unquote(raw jsontext.Value) (text []byte, err error) {
	if raw.Kind() != '"' {
		return nil, fmt.Errorf("want a text, not %.20s", raw)
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	d.unquoted, err = jsontext.AppendUnquote(d.unquoted[:0], raw)
	return d.unquoted, err
}

// The decoder puts so many bytes of texts, and so many optional values, into one piece of memory.
const (
	pieceBytes  = 16 << 10
	pieceValues = 512
)

// copy returns a text that stays valid.
func (d *decoder) copy(text []byte) string {
	if len(text) > d.texts.Cap()-d.texts.Len() {
		d.texts = strings.Builder{}
		d.texts.Grow(max(pieceBytes, len(text)))
	}
	from := d.texts.Len()
	d.texts.Write(text)
	return d.texts.String()[from:]
}

// keep returns a pointer to value in list, and makes a new list if the list is full.
func keep[T any](list *[]T, value T) *T {
	if len(*list) == cap(*list) {
		*list = make([]T, 0, pieceValues)
	}
	*list = append(*list, value)
	return &(*list)[len(*list)-1]
}
