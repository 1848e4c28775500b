// Package singer is a copy that another program keeps, a Singer target. It writes a project's changes as messages of
// version 0.3.0 of the specification, and after each batch the state after it. The target stores the state, and the next
// run gets it. Records may come twice, so the target replaces a row by its keys.
package singer

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/replicate"
	"github.com/lectern-dev/lectern/client"
)

// Stream is a table of the project.
type Stream struct {
	Name string
	// Keys are the columns that identify a row.
	Keys []string
	row  reflect.Type
	// project streams have no changes. They are written as a whole when something in the project has changed.
	project bool
}

// Rows of the streams whose records have more columns than in the API.
type (
	entryRow struct {
		client.Entry
		Seq       int64      `json:"seq"`
		DeletedAt *time.Time `json:"_sdc_deleted_at"`
	}
	eventRow struct {
		client.ChangedEvent
		Seq int64 `json:"seq"`
	}
	removalRow struct {
		client.Removal
		Seq int64 `json:"seq"`
	}
	historyRow struct {
		ExperimentID string `json:"experiment_id"`
		// Change numbers the changes of an experiment from 1.
		Change int64 `json:"change"`
		client.ExperimentStatusChange
	}
)

// Streams are all streams. The rows of removals say which events to remove: those of the entry with a lower seq.
var Streams = []Stream{
	{"entries", []string{"entry_id"}, reflect.TypeFor[entryRow](), false},
	{"events", []string{"event_key"}, reflect.TypeFor[eventRow](), false},
	{"removals", []string{"entry_id", "seq"}, reflect.TypeFor[removalRow](), false},
	{"embeddables", []string{"embeddable_id"}, reflect.TypeFor[client.EmbeddableWithDefinition](), true},
	{"embeddable_versions", []string{"embeddable_id", "version_number"}, reflect.TypeFor[client.EmbeddableVersionWithDefinition](), true},
	{"experiments", []string{"id"}, reflect.TypeFor[client.Experiment](), true},
	{"experiment_history", []string{"experiment_id", "change"}, reflect.TypeFor[historyRow](), true},
}

type object = map[string]any

// State is where a run ended.
type State struct {
	replicate.Position
	ProjectID string `json:"project_id"`
	// Streams are those that the reader has up to the position.
	Streams []string `json:"streams"`
}

// Schema returns the JSON schema of the rows.
func (s Stream) Schema() any {
	return object{"type": "object", "properties": s.properties()}
}

func (s Stream) properties() object {
	properties := object{}
	for _, field := range reflect.VisibleFields(s.row) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			properties[name] = property(field.Type, slices.Contains(s.Keys, name))
		}
	}
	return properties
}

func property(t reflect.Type, key bool) object {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	p, kind := object{}, "string"
	switch {
	case t == reflect.TypeFor[time.Time]():
		p["format"] = "date-time"
	case t.Kind() == reflect.Int64:
		kind = "integer"
	case t.Kind() == reflect.Slice:
		kind = "array"
		p["items"] = object{"type": "string"}
	}
	p["type"] = []string{kind}
	if !key {
		p["type"] = []string{"null", kind}
	}
	return p
}

// Writer is a copy whose rows and positions are messages.
type Writer struct {
	out   *bufio.Writer
	json  *json.Encoder
	at    State
	write map[string]bool
}

// NewWriter returns a Writer of streams to out. It continues after state, or begins if state lacks one of them. So a
// stream that is added gets all of its rows.
func NewWriter(out io.Writer, projectID string, streams []Stream, state State) *Writer {
	w := &Writer{out: bufio.NewWriterSize(out, 64<<10), write: map[string]bool{}}
	w.json = json.NewEncoder(w.out)
	w.json.SetEscapeHTML(false)
	complete := true
	w.at = State{ProjectID: projectID}
	for _, s := range streams {
		w.write[s.Name] = true
		w.at.Streams = append(w.at.Streams, s.Name)
		complete = complete && slices.Contains(state.Streams, s.Name)
	}
	if complete {
		w.at.Position = state.Position
	}
	return w
}

// Begin writes the schemas.
func (w *Writer) Begin() error {
	for _, s := range Streams {
		if !w.write[s.Name] {
			continue
		}
		if err := w.json.Encode(object{"type": "SCHEMA", "stream": s.Name, "schema": s.Schema(), "key_properties": s.Keys}); err != nil {
			return err
		}
	}
	return w.out.Flush()
}

// Project reports whether one of the streams is not part of the feed.
func Project(streams []Stream) bool {
	return slices.ContainsFunc(streams, func(s Stream) bool { return s.project })
}

// Open returns the position of the state, or of the last batch.
func (w *Writer) Open(context.Context) (replicate.Position, error) { return w.at.Position, nil }

// Limits bounds the memory of a batch.
func (w *Writer) Limits() replicate.Limits {
	return replicate.Limits{Changes: 5000, Bytes: 8 << 20, Linger: time.Second}
}

// Close has nothing to release.
func (w *Writer) Close() error { return nil }

// Apply writes the rows of a batch, and then the state.
func (w *Writer) Apply(_ context.Context, b *replicate.Batch) error {
	for i := range b.Changes {
		if err := w.change(&b.Changes[i]); err != nil {
			return err
		}
	}
	if b.Project != nil {
		if err := w.project(b.Project); err != nil {
			return err
		}
	}
	w.at.Position = b.Position
	if err := w.json.Encode(object{"type": "STATE", "value": object{"bookmarks": object{"lectern": w.at}}}); err != nil {
		return err
	}
	return w.out.Flush()
}

func (w *Writer) change(c *client.Change) error {
	switch c.Type {
	case client.EntryChanged:
		return w.row("entries", entryRow{*c.Entry, c.Seq, nil})
	case client.EventAdded:
		return w.row("events", eventRow{*c.Event, c.Seq})
	}
	if err := w.row("removals", removalRow{*c.Removal, c.Seq}); err != nil {
		return err
	}
	// All other columns are null: what the removed entry held is overwritten.
	empty := Streams[0].properties()
	for name := range empty {
		empty[name] = nil
	}
	empty["entry_id"], empty["seq"], empty["_sdc_deleted_at"] = c.Removal.EntryID, c.Seq, c.Removal.RemovedAt
	return w.row("entries", empty)
}

func (w *Writer) project(p *replicate.Project) error {
	if err := writeAll(w, "embeddables", p.Embeddables); err != nil {
		return err
	}
	if err := writeAll(w, "embeddable_versions", p.Versions); err != nil {
		return err
	}
	for _, e := range p.Experiments {
		if err := w.row("experiments", e); err != nil {
			return err
		}
	}
	numbers := map[string]int64{}
	for _, h := range p.History {
		numbers[h.ExperimentID]++
		if err := w.row("experiment_history", historyRow{h.ExperimentID, numbers[h.ExperimentID], h.ExperimentStatusChange}); err != nil {
			return err
		}
	}
	return nil
}

// writeAll writes the records that the source has of a stream, if it is one of the Writer's.
func writeAll[T any](w *Writer, stream string, records iter.Seq2[T, error]) error {
	if records == nil || !w.write[stream] {
		return nil
	}
	for record, err := range records {
		if err == nil {
			err = w.row(stream, record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// row writes a row, if its stream is one of the Writer's.
func (w *Writer) row(stream string, row any) error {
	if !w.write[stream] {
		return nil
	}
	return w.json.Encode(struct {
		Type   string `json:"type"`
		Stream string `json:"stream"`
		Record any    `json:"record"`
	}{"RECORD", stream, row})
}
