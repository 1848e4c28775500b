package export

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/parquetfile"
)

// conversion converts a complete export from NDJSON to Parquet, or to CSV with columns of entry_data. The names and
// types of such columns depend on all records, so the conversion begins when the list is complete.
type conversion func(ctx context.Context, records io.ReadSeeker, to io.Writer) error

// newConversion returns the conversion to the export's format, or nil if pages need no conversion. If the kind of
// records needs a conversion that does not exist, newConversion returns an error.
func newConversion(o *Options) (conversion, error) {
	kind, format := o.Query.Kind, o.Query.Format
	switch {
	case o.Columns == nil && format != Parquet:
		return nil, nil
	case kind == Entries && format == CSV:
		safe := o.Query.Safe
		return func(ctx context.Context, records io.ReadSeeker, to io.Writer) error {
			return o.entriesToCSV(ctx, records, newCSVWriter(to, safe))
		}, nil
	case kind == Entries && format == Parquet:
		return o.entriesToParquet, nil
	case kind == Events && format == Parquet && o.Columns == nil:
		return o.eventsToParquet, nil
	case o.Columns == nil:
		return nil, fmt.Errorf("no way to write %s as %s", kind, format)
	}
	return nil, fmt.Errorf("no way to write %s as %s with columns of entry_data", kind, format)
}

func (o *Options) entriesToCSV(ctx context.Context, records io.ReadSeeker, w *csvWriter) error {
	if err := o.observe(ctx, records); err != nil {
		return err
	}
	cells, data := slices.Clone(entryColumns), slices.Index(entryColumns, "entry_data")
	for _, c := range o.Columns.Columns() {
		cells = append(cells, c.Name)
	}
	if err := w.head(cells...); err != nil {
		return err
	}
	values := make([]any, len(o.Columns.Columns()))
	err := eachRecord(ctx, records, o.Converted, func(entry *jsontext.Value) (err error) {
		if cells, err = cellsOf(cells[:0], *entry, entryColumns); err != nil {
			return err
		}
		o.Columns.Values(cells[data], values)
		for _, v := range values {
			cells = append(cells, cellOf(v))
		}
		return w.write(cells...)
	})
	if err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}

// cellOf returns a value of a column as text, and "" for nil. Numbers have their shortest form, as in JSON. Times have
// the form of RFC 3339.
func cellOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		b, _ := json.Marshal(v) // it came from JSON, so it is finite
		return string(b)
	case int64:
		return strconv.FormatInt(v, 10)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case columns.Day:
		return v.String()
	}
	return ""
}

func (o *Options) entriesToParquet(ctx context.Context, records io.ReadSeeker, to io.Writer) error {
	if o.Columns != nil {
		if err := o.observe(ctx, records); err != nil {
			return err
		}
	}
	w := parquetfile.NewWriter(to, o.Columns, func(e *entryRow) string { return e.EntryData })
	return writeRows(ctx, records, o.Converted, w)
}

func (o *Options) eventsToParquet(ctx context.Context, records io.ReadSeeker, to io.Writer) error {
	return writeRows(ctx, records, o.Converted, parquetfile.NewWriter[eventRow](to, nil, nil))
}

// observe adapts the columns to all records, so that the type of a column fits every value of its key. A type that the
// user listed stays. observe rewinds records to the first record.
func (o *Options) observe(ctx context.Context, records io.ReadSeeker) error {
	cells := make([]string, 0, 2)
	err := eachRecord(ctx, records, nil, func(entry *jsontext.Value) (err error) {
		if cells, err = cellsOf(cells[:0], *entry, []string{"entry_id", "entry_data"}); err == nil {
			o.Columns.Observe(cells[0], cells[1])
		}
		return err
	})
	if err != nil {
		return err
	}
	o.Columns.Widen()
	_, err = records.Seek(0, io.SeekStart)
	return err
}

// writeRows writes all records of NDJSON as rows of a Parquet file, and closes w unless there was an error.
func writeRows[T any](ctx context.Context, records io.Reader, converted func(int), w *parquetfile.Writer[T]) error {
	err := eachRecord(ctx, records, converted, func(row *T) error { return w.Write([]T{*row}) })
	if err != nil {
		return err
	}
	return w.Close()
}

// eachRecord calls yield with each record of NDJSON, which is valid until yield returns. After every 1000 records,
// eachRecord calls converted with their number unless converted is nil, and stops if ctx has ended.
func eachRecord[T any](ctx context.Context, records io.Reader, converted func(int), yield func(*T) error) error {
	const pause = 1000 // records between two looks at ctx
	var record, none T
	n := 0
	return eachLine(records, longestLine, func(line []byte) error {
		record = none
		if err := json.Unmarshal(line, &record); err != nil {
			return fmt.Errorf("record %d: %w", n+1, err)
		}
		if err := yield(&record); err != nil {
			return err
		}
		if n++; n%pause == 0 {
			if converted != nil {
				converted(n)
			}
			return ctx.Err()
		}
		return nil
	})
}

// micros is a time in the form of the Parquet files: microseconds since 1970 in UTC.
type micros int64

// UnmarshalJSON reads a time of RFC 3339 in a JSON string, and drops digits after the microseconds.
func (m *micros) UnmarshalJSON(b []byte) error {
	var t time.Time
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	*m = micros(t.UnixMicro())
	return nil
}

// entryRow is a row of a Parquet file of entries. The same struct decodes an entry of the API from JSON.
type entryRow struct {
	EntryID      string `json:"entry_id" parquet:"entry_id"`
	GroupID      string `json:"group_id" parquet:"group_id,dict"`
	ProjectID    string `json:"project_id" parquet:"project_id,dict"`
	EmbeddableID string `json:"embeddable_id" parquet:"embeddable_id,dict"`
	ContactID    string `json:"contact_id" parquet:"contact_id"`
	CreatedAt    micros `json:"created_at" parquet:"created_at,timestamp(microsecond:utc)"`
	UpdatedAt    micros `json:"updated_at" parquet:"updated_at,timestamp(microsecond:utc)"`
	EntryData    string `json:"entry_data" parquet:"entry_data"`
}

// eventRow is a row of a Parquet file of events. The same struct decodes an event of the API from JSON. A nil field is
// null in both formats.
type eventRow struct {
	EntryID                 string  `json:"entry_id" parquet:"entry_id"`
	ContactID               string  `json:"contact_id" parquet:"contact_id"`
	ProjectID               string  `json:"project_id" parquet:"project_id,dict"`
	GroupID                 string  `json:"group_id" parquet:"group_id,dict"`
	EmbeddableID            string  `json:"embeddable_id" parquet:"embeddable_id,dict"`
	EmbeddableVersionNumber *int64  `json:"embeddable_version_number" parquet:"embeddable_version_number,optional"`
	Timestamp               micros  `json:"timestamp" parquet:"timestamp,timestamp(microsecond:utc)"`
	PageID                  *string `json:"page_id" parquet:"page_id,optional,dict"`
	PageKey                 *string `json:"page_key" parquet:"page_key,optional,dict"`
	PageIndex               *int64  `json:"page_index" parquet:"page_index,optional"`
	MaxPageID               *string `json:"max_page_id" parquet:"max_page_id,optional,dict"`
	MaxPageKey              *string `json:"max_page_key" parquet:"max_page_key,optional,dict"`
	MaxPageIndex            *int64  `json:"max_page_index" parquet:"max_page_index,optional"`
	TotalPages              *int64  `json:"total_pages" parquet:"total_pages,optional"`
	EventType               string  `json:"event_type" parquet:"event_type,dict"`
	ViewType                *string `json:"view_type" parquet:"view_type,optional,dict"`
	CustomEventName         *string `json:"custom_event_name" parquet:"custom_event_name,optional,dict"`
	CustomEventProps        *string `json:"custom_event_props" parquet:"custom_event_props,optional"`
	EventID                 *string `json:"event_id" parquet:"event_id,optional"`
	URL                     *string `json:"url" parquet:"url,optional,dict"`
}
