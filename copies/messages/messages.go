// Package messages writes a copy as messages to another program, such as a Singer target or Airbyte. After each batch,
// the package writes a message with the state. The program stores the state and passes the state to the next run. A
// record may be written twice, so the program must replace a row with the same keys.
package messages

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/fields"
)

// Format is the protocol of the program that reads the messages: [Singer] or [Airbyte].
type Format interface {
	// Catalog returns the message that describes all streams to the program.
	Catalog() any

	selected(catalog gjson.Result) []string                  // the names of the streams that the user selects
	deselected(catalog gjson.Result, stream string) []string // the columns of a stream that the user does not select
	stored(state gjson.Result) (at, streams gjson.Result)    // the state of an earlier run, and the names of its streams
	begin(s stream, schema object) any                       // the message before the first record of a stream; nil if there is none
	end(stream string) any                                   // the message after the last record of a stream; nil if there is none
	record(stream string, row any) any
	after(s state) any // the message with the state
	deleted() string   // the column with the time at which an entry was removed
}

type object = map[string]any

// state is the content of a state message: the position after a batch, and the streams that the program has.
type state struct {
	copies.Position
	ProjectID string `json:"project_id"`
	Masked    string `json:"masked,omitempty"`
	// Streams names the streams of which the program has all rows up to the position.
	Streams []string `json:"streams"`
}

// stream describes one table of the project as the other program sees it.
type stream struct {
	name    string
	keys    []string // the columns that identify a row
	record  reflect.Type
	more    object // the schemas of columns that the API's records do not have
	project bool   // the stream is not part of the feed; the Writer writes all rows when any of the project's records changed
}

var integer, text = object{"type": []string{"integer"}}, object{"type": []string{"string"}}

// streams are all streams that a project has. A row of removals also removes the events of its entry that have a
// smaller seq.
var streams = []stream{
	{"entries", []string{"entry_id"}, reflect.TypeFor[client.Entry](), object{"seq": integer}, false},
	{"events", []string{"event_key"}, reflect.TypeFor[client.ChangedEvent](), object{"seq": integer}, false},
	{"removals", []string{"entry_id", "seq"}, reflect.TypeFor[client.Removal](), object{"seq": integer}, false},
	{"embeddables", []string{"embeddable_id"}, reflect.TypeFor[client.EmbeddableWithDefinition](), nil, true},
	{"embeddable_versions", []string{"embeddable_id", "version_number"}, reflect.TypeFor[client.EmbeddableVersionWithDefinition](), nil, true},
	{"experiments", []string{"id"}, reflect.TypeFor[client.Experiment](), nil, true},
	{"experiment_history", []string{"experiment_id", "change"}, reflect.TypeFor[client.ExperimentStatusChange](), object{"experiment_id": text, "change": integer}, true},
}

var entryFields = fields.Of[client.Entry]()

// schema returns the JSON schema of a stream's rows. A column may be null, unless it is a key or one of s.more.
func schema(f Format, s stream) object {
	columns := object{}
	for _, field := range fields.OfType(s.record) {
		columns[field.Name] = column(field.Type, slices.Contains(s.keys, field.Name))
	}
	maps.Copy(columns, s.more)
	if s.name == "entries" {
		columns[f.deleted()] = column(reflect.TypeFor[time.Time](), false)
	}
	return object{"type": "object", "properties": columns}
}

func column(t reflect.Type, key bool) object {
	c, types := object{}, []string{"string", "null"}
	switch {
	case t == reflect.TypeFor[time.Time]():
		c["format"] = "date-time"
	case t.Kind() == reflect.Int64:
		types[0] = "integer"
	case t.Kind() == reflect.Slice:
		types[0], c["items"] = "array", text
	}
	if key {
		types = types[:1]
	}
	c["type"] = types
	return c
}

// Writer is a [copies.Destination] that writes rows and positions as messages to an io.Writer.
type Writer struct {
	out     *bufio.Writer
	format  Format
	project bool // the user selected a stream that is not part of the feed
	mask    *copies.Mask
	without map[string][]string // columns that a stream lacks
	at      state
}

// NewWriter returns a Writer of the streams that the user's catalog selects; without a catalog, of all streams. The
// Writer continues from stored, the state that the program stored. If stored lacks a selected stream, the Writer
// begins from the start, so that an added stream gets all of its rows.
//
// The mask and the catalog may leave out columns of a stream, but not its keys, seq and the time of a removal. A state
// of another project or mask is an error, and so is a catalog that selects no streams or unknown ones.
func NewWriter(out io.Writer, f Format, projectID string, catalog, stored gjson.Result, m *copies.Mask) (*Writer, error) {
	at, known := f.stored(stored)
	if at.Exists() {
		made, now := copies.Made{Masked: at.Get("masked").String()}, copies.Made{}
		made.ProjectID, now.ProjectID = cmp.Or(at.Get("project_id").String(), projectID), projectID
		if err := made.Check(now, m, false, "the state is one", "no --state to begin again"); err != nil {
			return nil, err
		}
	}
	w := &Writer{out: bufio.NewWriterSize(out, 64<<10), format: f, mask: m, without: map[string][]string{}, at: state{ProjectID: projectID, Masked: m.String()}}
	w.at.Position = copies.Position{Cursor: at.Get("cursor").String(), Seq: at.Get("seq").Int(), Project: at.Get("project").String()}
	names := f.selected(catalog)
	for _, s := range streams {
		if catalog.Exists() && !slices.Contains(names, s.name) {
			continue
		}
		w.project = w.project || s.project
		w.at.Streams = append(w.at.Streams, s.name)
		deselected := f.deselected(catalog, s.name)
		for name := range schema(f, s)["properties"].(object) {
			if (slices.Contains(deselected, name) || m.Lacks(copies.ColumnOf(name))) && !slices.Contains(s.keys, name) && name != "seq" && name != f.deleted() {
				w.without[s.name] = append(w.without[s.name], name)
			}
		}
		if !slices.ContainsFunc(known.Array(), func(name gjson.Result) bool { return name.String() == s.name }) {
			w.at.Position = copies.Position{}
		}
	}
	if catalog.Exists() && (len(names) == 0 || len(names) != len(w.at.Streams)) {
		return nil, fmt.Errorf("the catalog selects the streams %q; allowed: some of those that were discovered", names)
	}
	return w, nil
}

// Open writes the messages that begin the selected streams, such as schemas, and returns the position in the stored
// state.
func (w *Writer) Open(context.Context) (copies.Position, error) {
	for _, s := range streams {
		columns := schema(w.format, s)
		maps.DeleteFunc(columns["properties"].(object), func(name string, _ any) bool { return slices.Contains(w.without[s.name], name) })
		if m := w.format.begin(s, columns); m != nil && slices.Contains(w.at.Streams, s.name) {
			if err := w.message(m); err != nil {
				return w.at.Position, err
			}
		}
	}
	return w.at.Position, nil
}

func (w *Writer) message(m any) error {
	if err := jsonv2.MarshalWrite(w.out, m, jsonv2.FormatNilSliceAsNull(true), jsonv2.Deterministic(true)); err != nil {
		return err
	}
	return w.out.WriteByte('\n')
}

// Traits returns whether the user selected records that have no feed.
func (w *Writer) Traits() copies.Traits { return copies.Traits{Project: w.project} }

// Limits returns the size of a batch, which bounds the memory that a batch takes.
func (w *Writer) Limits() copies.Limits { return copies.Limits{Changes: 5000, Bytes: 8 << 20} }

// Close does nothing and returns nil: [Writer.Apply] flushes the messages.
func (w *Writer) Close() error { return nil }

// Apply writes the rows of a batch that the selected streams have, then a message with the state after the batch, and
// flushes all messages.
func (w *Writer) Apply(_ context.Context, b *copies.Batch) error {
	for _, c := range b.Changes {
		if err := w.change(c); err != nil {
			return err
		}
	}
	if b.Project != nil {
		if err := w.records(b.Project); err != nil {
			return err
		}
	}
	w.at.Position = b.Position
	if err := w.message(w.format.after(w.at)); err != nil {
		return err
	}
	for _, name := range w.at.Streams {
		if m := w.format.end(name); m != nil && b.Current {
			if err := w.message(m); err != nil {
				return err
			}
		}
	}
	return w.out.Flush()
}

func (w *Writer) change(c client.Change) error {
	switch c.Type {
	case client.EntryChanged:
		// A map, as for removals: some programs need the same order of columns in all rows of a stream.
		entry := object{"seq": c.Seq, w.format.deleted(): nil}
		for i, v := range fields.Values(nil, entryFields, c.Entry) {
			entry[entryFields[i].Name] = v
		}
		return write(w, "entries", struct{}{}, entry)
	case client.EventAdded:
		return write(w, "events", *c.Event, object{"seq": c.Seq})
	}
	// All other columns are null, so that the program overwrites the data of the removed entry.
	entry := object{}
	for name := range schema(w.format, streams[0])["properties"].(object) {
		entry[name] = nil
	}
	entry["entry_id"], entry["seq"], entry[w.format.deleted()] = c.Removal.EntryID, c.Seq, c.Removal.RemovedAt
	return errors.Join(write(w, "removals", *c.Removal, object{"seq": c.Seq}), write(w, "entries", struct{}{}, entry))
}

func (w *Writer) records(p *copies.Project) error {
	if p.History != nil {
		for h, err := range p.History {
			if err == nil {
				err = write(w, "experiment_history", h.ExperimentStatusChange, object{"experiment_id": h.ExperimentID, "change": h.Change})
			}
			if err != nil {
				return err
			}
		}
	}
	return errors.Join(writeAll(w, "experiments", p.Experiments),
		writeAll(w, "embeddables", p.Embeddables), writeAll(w, "embeddable_versions", p.Versions))
}

// writeAll writes all records of a stream that is not part of the feed. records is nil if the API key may not read the
// records.
func writeAll[T any](w *Writer, stream string, records iter.Seq2[T, error]) error {
	if records == nil || !slices.Contains(w.at.Streams, stream) {
		return nil
	}
	for record, err := range records {
		if err == nil {
			err = write(w, stream, record, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// row is a record of the API with further columns, which become members of the same JSON object.
type row[T any] struct {
	Record T      `json:",embed"`
	More   object `json:",embed"`
}

// write writes the message of one row, if the stream is selected. write leaves out the columns in w.without.
func write[T any](w *Writer, stream string, record T, more object) error {
	if !slices.Contains(w.at.Streams, stream) {
		return nil
	}
	if len(w.without[stream]) == 0 {
		return w.message(w.format.record(stream, row[T]{record, more}))
	}
	text, err := jsonv2.Marshal(row[T]{record, more}, jsonv2.FormatNilSliceAsNull(true))
	if err != nil {
		return err
	}
	var members map[string]jsontext.Value
	if err := jsonv2.Unmarshal(text, &members); err != nil {
		return err
	}
	for _, name := range w.without[stream] {
		delete(members, name)
	}
	return w.message(w.format.record(stream, members))
}
