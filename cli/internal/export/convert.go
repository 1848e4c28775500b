package export

import (
	"context"
	"fmt"
	"io"
)

// convert converts a complete list from NDJSON to Parquet, or to CSV with columns of entry_data. The names and types of
// such columns depend on all records, except for types that the user listed.
func (o *Options) convert(ctx context.Context, records io.ReadSeeker, to io.Writer) error {
	if o.Columns != nil {
		err := eachRecord(ctx, records, nil, func(line []byte) error {
			cells, err := cellsOf(nil, line, []string{"entry_id", "entry_data"})
			if err == nil {
				o.Columns.Observe(cells[0], cells[1])
			}
			return err
		})
		if err != nil {
			return err
		}
		o.Columns.Widen()
		if _, err := records.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	enc, err := newEncoder(o.Query, o.Columns, to, o.Long)
	if err != nil {
		return err
	}
	if err := enc.head(); err != nil {
		return err
	}
	if err := eachRecord(ctx, records, o.Converted, enc.record); err != nil {
		return err
	}
	return enc.end()
}

// eachRecord calls yield with each line of NDJSON. After every 1000 records, eachRecord calls converted with their
// number unless converted is nil, and stops if ctx has ended.
func eachRecord(ctx context.Context, records io.Reader, converted func(int), yield func([]byte) error) error {
	const pause = 1000 // records between two looks at ctx
	n := 0
	return eachLine(records, longestLine, func(line []byte) error {
		n++
		if err := yield(line); err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		if n%pause > 0 {
			return nil
		}
		if converted != nil {
			converted(n)
		}
		return ctx.Err()
	})
}
