package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Format is the format of an export.
type Format string

// The formats.
const (
	NDJSON  Format = "ndjson"
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// encoder turns records of NDJSON into the bytes of the export.
type encoder interface {
	// header returns the beginning of the export.
	header() []byte
	// append appends the record in line, a line of NDJSON with its end.
	append(dst, line []byte) ([]byte, error)
}

// Kind is the kind of records of an export.
type Kind string

// The kinds.
const (
	Entries     Kind = "entries"
	PageViews   Kind = "page-views"
	Embeddables Kind = "embeddables"
	Versions    Kind = "versions"
	Experiments Kind = "experiments"

	// Events are read from the change feed, of which each record is a change.
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
		return newTable(q.Safe, entryRows, entryColumns...), nil
	case kind == PageViews:
		columns := []string{"entry_id", "group_id", "project_id", "embeddable_id", "contact_id",
			"created_at", "updated_at", "timestamp", "page_id", "page_key", "page_index"}
		if q.IncludeURLs {
			columns = append(columns, "url")
		}
		return newTable(q.Safe, pageViewRows(q.IncludeURLs), columns...), nil
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

// asIs writes the records unchanged.
type asIs struct{}

func (asIs) header() []byte                          { return nil }
func (asIs) append(dst, line []byte) ([]byte, error) { return append(dst, line...), nil }

// eventFields are the fields of an event in the order of the API, as import takes them.
var eventFields = []string{"entry_id", "contact_id", "project_id", "group_id", "embeddable_id", "embeddable_version_number",
	"timestamp", "page_id", "page_key", "page_index", "max_page_id", "max_page_key", "max_page_index", "total_pages",
	"event_type", "view_type", "custom_event_name", "custom_event_props", "event_id", "url"}

// eventOf writes the event of each change.
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

// objectOf writes records as NDJSON with these fields alone, with unchanged values.
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

// table writes CSV.
type table struct {
	rows   func(line []byte, write func(cells ...string) error) error
	first  []string
	buffer bytes.Buffer
	csv    *csvWriter
}

// newTable returns a table with these columns. If safe is set, it is safe for spreadsheets.
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

// take moves the written bytes to dst.
func (t *table) take(dst []byte, err error) ([]byte, error) {
	t.csv.Flush()
	dst = append(dst, t.buffer.Bytes()...)
	t.buffer.Reset()
	return dst, err
}

// newFieldTable returns a table with a row for each record and a column for each field. Text is written unchanged, null
// as an empty cell, and all else as the JSON of the record.
func newFieldTable(safe bool, fields ...string) *table {
	return newTable(safe, func(line []byte, write func(...string) error) error {
		var record map[string]json.RawMessage
		if err := json.Unmarshal(line, &record); err != nil {
			return err
		}
		cells := make([]string, len(fields))
		for i, name := range fields {
			value, ok := record[name]
			if !ok {
				return fmt.Errorf("it has no %s", name)
			}
			switch value[0] {
			case '"':
				if err := json.Unmarshal(value, &cells[i]); err != nil {
					return err
				}
			case 'n':
			default:
				cells[i] = string(value)
			}
		}
		return write(cells...)
	}, fields...)
}

type entryFields struct {
	EntryID      string `json:"entry_id"`
	GroupID      string `json:"group_id"`
	ProjectID    string `json:"project_id"`
	EmbeddableID string `json:"embeddable_id"`
	ContactID    string `json:"contact_id"`
	// Times are text here: they pass through as the API wrote them.
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
}

// entryColumns are the columns of an entry in CSV.
var entryColumns = []string{"entry_id", "group_id", "project_id", "embeddable_id", "contact_id", "created_at", "updated_at", "entry_data"}

// textEntry is an entry in CSV.
type textEntry struct {
	entryFields
	Data string `json:"entry_data"`
}

// cells returns the values of entryColumns.
func (e *textEntry) cells() []string {
	return []string{e.EntryID, e.GroupID, e.ProjectID, e.EmbeddableID, e.ContactID, e.CreatedAt, e.UpdatedAt, e.Data}
}

func entryRows(line []byte, write func(...string) error) error {
	var e textEntry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	return write(e.cells()...)
}

func pageViewRows(urls bool) func([]byte, func(...string) error) error {
	return func(line []byte, write func(...string) error) error {
		var e struct {
			entryFields
			PageViews []struct {
				Timestamp string `json:"timestamp"`
				PageID    string `json:"page_id"`
				PageKey   string `json:"page_key"`
				PageIndex int64  `json:"page_index"`
				URL       string `json:"url"`
			} `json:"page_views"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		for _, v := range e.PageViews {
			cells := []string{e.EntryID, e.GroupID, e.ProjectID, e.EmbeddableID, e.ContactID, e.CreatedAt, e.UpdatedAt,
				v.Timestamp, v.PageID, v.PageKey, strconv.FormatInt(v.PageIndex, 10)}
			if urls {
				cells = append(cells, v.URL)
			}
			if err := write(cells...); err != nil {
				return err
			}
		}
		return nil
	}
}
