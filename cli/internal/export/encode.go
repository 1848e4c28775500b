package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/fields"
	"github.com/lectern-dev/lectern/copies/parquetfile"
)

// Format is the format of the records in an exported file or stream.
type Format string

// The formats of an export. Only entries and events can be written as Parquet.
const (
	NDJSON  Format = "ndjson"
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// Kind is the kind of the records that an export writes. The kind determines the columns of CSV and Parquet.
type Kind string

// The kinds of records. All kinds except [Events] are lists of the API.
const (
	Entries     Kind = "entries"
	PageViews   Kind = "page-views"
	Embeddables Kind = "embeddables"
	Versions    Kind = "versions"
	Experiments Kind = "experiments"

	// Events are read from the change feed, in which each record is a change that contains an event.
	Events Kind = "events"
)

// event is an event as an export has it. Import accepts these fields, but not event_key, which the service makes.
type event struct {
	client.Event
	EventID *string `json:"event_id"`
	URL     *string `json:"url"`
}

// fieldsOf has the fields of each kind of records, in the order of the API. They are the columns of CSV and Parquet.
// [PageViews] have other columns: see newViewTable.
var fieldsOf = map[Kind][]string{
	Entries:     fields.Names[client.Entry](),
	Events:      fields.Names[event](),
	Embeddables: fields.Names[client.Embeddable](),
	Versions:    fields.Names[client.EmbeddableVersion](),
	Experiments: fields.Names[client.Experiment](),
}

// encoder writes records in the format of the export.
type encoder struct {
	head   func() error            // writes the first row of CSV
	record func(line []byte) error // writes a record, of which line is the JSON
	end    func() error            // writes the end of Parquet
}

// newEncoder returns the encoder of the query's records to to. The names and types of the columns in set are complete,
// and set is nil without columns of entry_data. long is as in [Options]. newEncoder returns an error if the records cannot
// have the format.
func newEncoder(q Query, set *columns.Set, to io.Writer, long func()) (*encoder, error) {
	nothing := func() error { return nil }
	switch {
	case set != nil && (q.Kind != Entries || q.Format == NDJSON):
		return nil, fmt.Errorf("no way to write %s as %s with columns of entry_data", q.Kind, q.Format)
	case q.Format == NDJSON && q.Kind == Events:
		return &encoder{nothing, func(line []byte) error { return writeObject(to, line, fieldsOf[Events]) }, nothing}, nil
	case q.Format == NDJSON:
		return &encoder{nothing, func(line []byte) error { _, err := to.Write(line); return err }, nothing}, nil
	case q.Format == CSV:
		head, rows := newTable(q.Kind, set)
		if q.Kind == PageViews {
			head, rows = newViewTable(q.IncludeURLs)
		}
		w := newCSVWriter(to, q.Safe, long)
		return &encoder{func() error { return w.head(head...) }, func(line []byte) error { return rows(line, w.write) }, nothing}, nil
	case q.Kind == Entries:
		return newRows(parquetfile.NewWriter(to, set, func(e *client.Entry) string { return e.Data })), nil
	case q.Kind == Events:
		return newRows(parquetfile.NewWriter[event](to, nil, nil)), nil
	}
	return nil, fmt.Errorf("no way to write %s as %s", q.Kind, q.Format)
}

// newRows returns the encoder of rows of Parquet.
func newRows[T any](w *parquetfile.Writer[T]) *encoder {
	row := make([]T, 1)
	return &encoder{func() error { return nil }, func(line []byte) error {
		clear(row)
		if err := jsonv2.Unmarshal(line, &row[0]); err != nil {
			return err
		}
		return w.Write(row)
	}, w.Close}
}

// newTable returns the first row of CSV and a function that writes the row of a record. The columns are the fields of
// kind and then the columns of set.
func newTable(kind Kind, set *columns.Set) (head []string, rows func(line []byte, write func(...string) error) error) {
	names := fieldsOf[kind]
	head = slices.Clone(names)
	var values []any
	if set != nil {
		for _, c := range set.Columns() {
			head = append(head, c.Name)
		}
		values = make([]any, len(set.Columns()))
	}
	data := slices.Index(names, "entry_data")
	return head, func(line []byte, write func(...string) error) error {
		cells, err := cellsOf(nil, line, names)
		if err != nil {
			return err
		}
		if len(values) > 0 {
			set.Values(cells[data], values)
		}
		for _, v := range values {
			cells = append(cells, cellOf(v))
		}
		return write(cells...)
	}
}

// newViewTable returns the first row of CSV and a function that writes a row for each page view. The columns are the
// fields of an entry and then those of a page view. An entry without page views has no row.
func newViewTable(urls bool) (head []string, rows func(line []byte, write func(...string) error) error) {
	const list, url = "page_views", "url"
	entry := slices.DeleteFunc(fields.Names[client.EntryPageViews](), func(name string) bool { return name == list })
	view := slices.DeleteFunc(fields.Names[client.PageView](), func(name string) bool { return name == url && !urls })
	return slices.Concat(entry, view), func(line []byte, write func(...string) error) error {
		var e struct {
			PageViews []json.RawMessage `json:"page_views"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		cells, err := cellsOf(nil, line, entry)
		for _, v := range e.PageViews {
			if err != nil {
				return err
			}
			var row []string
			if row, err = cellsOf(slices.Clip(cells), v, view); err == nil {
				err = write(row...)
			}
		}
		return err
	}
}

// nullable has the names of the fields that may be null.
var nullable = func() map[string]bool {
	names := map[string]bool{}
	for _, list := range [][]fields.Field{fields.Of[client.Entry](), fields.Of[event](), fields.Of[client.Embeddable](), fields.Of[client.EmbeddableVersion](), fields.Of[client.Experiment]()} {
		for _, f := range list {
			names[f.Name] = f.Nullable || f.Type.Kind() == reflect.Slice // a list may be null
		}
	}
	return names
}()

// pick returns the values of the named fields of a record in JSON. A missing field is null if it may be null, because a
// service of the version before may lack the field. Any other missing field is an error.
func pick(line []byte, names []string) ([]json.RawMessage, error) {
	var record map[string]json.RawMessage
	if err := json.Unmarshal(line, &record); err != nil {
		return nil, err
	}
	values := make([]json.RawMessage, len(names))
	for i, name := range names {
		values[i] = record[name]
		if values[i] == nil && nullable[name] {
			values[i] = json.RawMessage("null")
		}
		if values[i] == nil {
			return nil, fmt.Errorf("it has no %s", name)
		}
	}
	return values, nil
}

// writeObject writes an object with only the named fields of a record, in this order and with unchanged values.
func writeObject(to io.Writer, line []byte, names []string) error {
	values, err := pick(line, names)
	if err != nil {
		return err
	}
	var object bytes.Buffer
	for i, value := range values {
		object.WriteString(`,"` + names[i] + `":`)
		object.Write(value)
	}
	object.Bytes()[0] = '{'
	object.WriteString("}\n")
	_, err = to.Write(object.Bytes())
	return err
}

// cellsOf appends the named fields of a record in JSON to cells. Text is unquoted, null is an empty cell, and any other
// value is its JSON.
func cellsOf(cells []string, line []byte, names []string) ([]string, error) {
	values, err := pick(line, names)
	for _, value := range values {
		cell := ""
		switch value[0] {
		case '"':
			if err := json.Unmarshal(value, &cell); err != nil {
				return nil, err
			}
		case 'n':
		default:
			cell = string(value)
		}
		cells = append(cells, cell)
	}
	return cells, err
}

// cellOf returns a value of a column of entry_data as text, and "" for nil. Numbers have their shortest form, as in
// JSON. Times have the form of RFC 3339.
func cellOf(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case float64:
		b, _ := jsonv2.Marshal(v) // it came from JSON, so it is finite
		return string(b)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(value) // columns.Day has a method String
}
