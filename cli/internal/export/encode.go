package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/fields"
)

// Format is the format of the records in an exported file or stream.
type Format string

// The formats of an export. Only entries and events can be written as Parquet.
const (
	NDJSON  Format = "ndjson"
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// encoder turns records of NDJSON into the bytes of the export, without a look at later records.
type encoder interface {
	// header returns the beginning of the export, such as the first row of CSV; nil is none.
	header() []byte
	// append appends a record to dst, in the format of the export. line is the record as a line of NDJSON, with its
	// line end.
	append(dst, line []byte) ([]byte, error)
}

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

func newEncoder(q Query) (encoder, error) {
	kind, format := q.Kind, q.Format
	switch {
	case kind == Events && format == NDJSON:
		return eventOf{objectOf(eventFields)}, nil
	case kind == Events && format == CSV:
		return eventOf{newFieldTable(q.Safe, eventFields...)}, nil
	case format == NDJSON:
		return asIs{}, nil
	case format != CSV:
	case kind == Entries:
		return newFieldTable(q.Safe, entryColumns...), nil
	case kind == PageViews:
		return newPageViewTable(q), nil
	case kind == Embeddables:
		return newFieldTable(q.Safe, "embeddable_id", "title", "group_id", "project_id"), nil
	case kind == Versions:
		return newFieldTable(q.Safe, "embeddable_id", "version_number", "saved_at"), nil
	case kind == Experiments:
		return newFieldTable(q.Safe, "id", "experimentId", "flowId", "name", "hypothesis", "impact_metrics", "no_impact_metrics",
			"created_at", "updated_at", "observations", "outcome", "attachments", "variants", "flow_ids",
			"paused_showing_variant", "winner_variant", "status"), nil
	}
	return nil, fmt.Errorf("no way to write %s as %s", kind, format)
}

// asIs is the encoder of NDJSON, which writes the API's lines unchanged.
type asIs struct{}

func (asIs) header() []byte                          { return nil }
func (asIs) append(dst, line []byte) ([]byte, error) { return append(dst, line...), nil }

// eventFields are the fields of an event in the order of the API, without event_key, which the service makes. Import
// accepts these fields.
var eventFields = slices.DeleteFunc(fields.Names[client.ChangedEvent](), func(name string) bool { return name == "event_key" })

// eventOf takes the event out of each change, and encodes the event with another encoder.
type eventOf struct{ encoder }

func (e eventOf) append(dst, line []byte) ([]byte, error) {
	var change struct {
		Event json.RawMessage `json:"event"`
	}
	if err := json.Unmarshal(line, &change); err != nil {
		return dst, err
	}
	if change.Event == nil {
		return dst, fmt.Errorf("it has no event")
	}
	return e.encoder.append(dst, change.Event)
}

// objectOf is an encoder of NDJSON. Each object has only the named fields of its record, in this order, with unchanged
// values. A record without one of the fields is an error.
type objectOf []string

func (objectOf) header() []byte { return nil }

func (o objectOf) append(dst, line []byte) ([]byte, error) {
	var record map[string]json.RawMessage
	if err := json.Unmarshal(line, &record); err != nil {
		return dst, err
	}
	for i, name := range o {
		value, ok := record[name]
		if !ok {
			return dst, fmt.Errorf("it has no %s", name)
		}
		before := `,"`
		if i == 0 {
			before = `{"`
		}
		dst = append(append(dst, before...), name...)
		dst = append(append(dst, `":`...), value...)
	}
	return append(dst, "}\n"...), nil
}

// table is the encoder of CSV. first is the header row, and rows writes the rows of one record.
type table struct {
	rows   func(line []byte, write func(cells ...string) error) error
	first  []string
	buffer bytes.Buffer
	csv    *csvWriter
}

// newTable returns a table with the given header row. rows writes the rows of one record. If safe is set, the CSV is
// safe for spreadsheets: see [safeCell].
func newTable(safe bool, rows func([]byte, func(...string) error) error, columns ...string) *table {
	t := &table{rows: rows, first: columns}
	t.csv = newCSVWriter(&t.buffer, safe)
	return t
}

func (t *table) header() []byte {
	b, _ := t.take(nil, t.csv.head(t.first...)) // a buffer takes all
	return b
}

func (t *table) append(dst, line []byte) ([]byte, error) {
	return t.take(dst, t.rows(line, t.csv.write))
}

// take moves the CSV that was written so far to the end of dst, and returns err unchanged.
func (t *table) take(dst []byte, err error) ([]byte, error) {
	t.csv.Flush()
	dst = append(dst, t.buffer.Bytes()...)
	t.buffer.Reset()
	return dst, err
}

// entryColumns are the columns of an entry in CSV: the fields of the API in their order.
var entryColumns = fields.Names[client.Entry]()

// newFieldTable returns a table with a row for each record and a column for each field in names.
func newFieldTable(safe bool, names ...string) *table {
	return newTable(safe, func(line []byte, write func(...string) error) error {
		cells, err := cellsOf(nil, line, names)
		if err != nil {
			return err
		}
		return write(cells...)
	}, names...)
}

// newPageViewTable returns a table with a row for each page view: the fields of its entry, and then those of the page
// view. An entry without page views has no row. The column url exists only if q.IncludeURLs is set.
func newPageViewTable(q Query) *table {
	const list, url = "page_views", "url"
	entry := slices.DeleteFunc(fields.Names[client.EntryPageViews](), func(name string) bool { return name == list })
	view := slices.DeleteFunc(fields.Names[client.PageView](), func(name string) bool { return name == url && !q.IncludeURLs })
	return newTable(q.Safe, func(line []byte, write func(...string) error) error {
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
	}, append(entry, view...)...)
}

// cellsOf appends the fields in names of a record to cells; line is the record in JSON. Text is unquoted, null is an
// empty cell, and any other value is its JSON. A missing field is an error.
func cellsOf(cells []string, line []byte, names []string) ([]string, error) {
	var record map[string]json.RawMessage
	if err := json.Unmarshal(line, &record); err != nil {
		return nil, err
	}
	for _, name := range names {
		value, ok := record[name]
		if !ok {
			return nil, fmt.Errorf("it has no %s", name)
		}
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
	return cells, nil
}
