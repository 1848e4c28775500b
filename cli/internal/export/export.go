// Package export writes lists of the API to files or streams. [Run] follows the cursors of the list, page by page. Run
// writes a file as FILE.part, and records its query and the length of its settled pages in FILE.part.json.
//
// After an interruption, the next run continues after the last settled page. The file is then the same as after an
// uninterrupted run over the same data. Parquet, and CSV with columns of entry_data, need the whole list. So FILE.part
// is NDJSON in these cases, and Run converts the complete list. [Follow] writes the endless change feed to a stream.
package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/columns"
)

// Query identifies the list to export. Run continues the part of an earlier run only if all fields of the query are the
// same. Format and Safe may differ between two runs that both convert the complete list.
type Query struct {
	URL string `json:"url"`
	// List is the path of the list in the API, with its filters and its order.
	List   string `json:"list"`
	Kind   Kind   `json:"kind"`
	Format Format `json:"format"`
	// Safe makes a CSV file safe for spreadsheets: see [safeCell].
	Safe bool `json:"safe,omitempty"`
	// IncludeURLs reports whether page views have URLs, for which the CSV then has a column.
	IncludeURLs bool `json:"include_urls,omitempty"`
	// Limit is the maximum number of exported records; 0 means all records.
	Limit int `json:"limit,omitempty"`
}

// Options are the settings of one call of [Run]: the list, the function that reads pages, and the destination.
type Options struct {
	Query Query
	// Fetch reads the page after cursor, of at most limit records, as client.Client.Raw does. Fetch calls receive
	// again if a transfer broke off.
	Fetch func(ctx context.Context, cursor string, limit int, receive func(client.RawPage) error) error
	// PageSize is the maximum number of records that one request asks for.
	PageSize int
	// Columns, if set, adds columns for keys of entry_data to entries in CSV and Parquet. Run adapts Columns to the
	// entries.
	Columns *columns.Set
	// Path is the path of the file. If Path is empty, the export goes to Stream and cannot be resumed.
	Path   string
	Stream io.Writer
	// Restart discards the part that an earlier run left, so that the export begins with the first page.
	Restart bool
	// Progress, if set, is called with the number of settled records and bytes.
	Progress func(records int, bytes int64)
	// Converted, if set, is called after every 1000 converted records with their number. The conversion begins after
	// the list is complete.
	Converted func(records int)
	// Long, if set, is called for each cell of a Safe file that Excel would cut.
	Long func()
}

// Result is the outcome of one call of [Run]: the number of exported records and bytes.
type Result struct {
	// Records counts the records of the list. Bytes counts the bytes of the file or the stream. The part of an earlier
	// run is included in both numbers.
	Records int
	Bytes   int64
	// Resumed reports whether the run continued the part of an earlier run.
	Resumed bool
}

// Run exports the list of o.Query to a file or a stream. After an error, the part of a file stays. A call with the same
// options but without Restart continues that part.
func Run(ctx context.Context, o Options) (result Result, err error) {
	list := o.Query // as the part has it
	converts := o.Columns != nil || o.Query.Format == Parquet
	if converts {
		if _, err := newEncoder(o.Query, o.Columns, io.Discard, nil); err != nil {
			return result, err
		}
		// The part is the same NDJSON for each Format and Safe, so a run with another format may continue the part.
		list.Format, list.Safe = NDJSON, false
	}
	out := &output{}
	out.Writer = bufio.NewWriterSize(&out.to, 256<<10)
	enc, err := newEncoder(list, nil, out, o.Long)
	if err != nil {
		return result, err
	}
	var p *part
	if o.Path != "" {
		p, err = openPart(o.Path, list, o.Restart)
	} else {
		p, err = newStream(o.Stream, converts)
	}
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, p.close()) }()

	result.Resumed = p.at.Bytes > 0
	for {
		result.Records, result.Bytes = p.at.Records, p.at.Bytes
		if o.Progress != nil {
			o.Progress(result.Records, result.Bytes)
		}
		switch {
		case p.at.Done && converts:
			err := p.finish(func(records io.ReadSeeker, to io.Writer) error {
				out.reset(to, 0)
				err := errors.Join(o.convert(ctx, records, out), out.Flush())
				result.Bytes = out.to.n
				return err
			})
			return result, err
		case p.at.Done:
			return result, p.finish(nil)
		}
		if err := o.page(ctx, enc, p, out); err != nil {
			return result, err
		}
	}
}

// page fetches the page after the last settled page, writes its records with enc through out to p, and settles them.
func (o *Options) page(ctx context.Context, enc *encoder, p *part, out *output) error {
	limit, at := o.PageSize, p.at
	if o.Query.Limit > 0 {
		limit = min(limit, o.Query.Limit-at.Records)
	}
	var next mark
	current := false
	err := o.Fetch(ctx, at.Cursor, limit, func(raw client.RawPage) error {
		// Fetch calls this function again if the transfer broke off. rewind then discards the incomplete page.
		if err := p.rewind(); err != nil {
			return err
		}
		out.reset(p.file, at.Bytes)
		next, current = mark{Cursor: raw.NextCursor, Records: at.Records}, raw.Current
		if at.Bytes == 0 {
			if err := enc.head(); err != nil {
				return err
			}
		}
		err := eachLine(raw.Body, longestLine, func(line []byte) error {
			next.Records++
			if err := o.record(enc, line); err != nil {
				return fmt.Errorf("record %d: %w", next.Records, err)
			}
			return nil
		})
		if err == nil {
			err = out.Flush()
		}
		next.Bytes = out.to.n
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case next.Cursor == "", o.Query.Limit > 0 && next.Records >= o.Query.Limit,
		o.Query.Kind == Events && current: // the feed has a cursor on every page
		next.Done, next.Cursor = true, ""
	case next.Cursor == at.Cursor:
		return errors.New("the server answers the same cursor again: the list would never end")
	}
	return p.settle(next)
}

// record writes a record of the API with enc. A change of the feed is not written, but its event.
func (o *Options) record(enc *encoder, line []byte) error {
	if o.Query.Kind == Events {
		event, err := pick(line, []string{"event"})
		if err != nil {
			return err
		}
		line = event[0]
	}
	return enc.record(line)
}

// longestLine is the limit for a line that an export reads into memory, in bytes: twice the largest MAX_RECORD_BYTES.
const longestLine = 1 << 30

// eachLine calls yield with each line of r, including its line end. A last line without a line end is an error. A line
// that is much longer than longest bytes is also an error, so that a broken server cannot take all memory.
func eachLine(r io.Reader, longest int, yield func([]byte) error) error {
	in := bufio.NewReaderSize(r, 256<<10)
	var long []byte
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(long)+len(line) > longest {
				return fmt.Errorf("a line of the answer is longer than %d MiB", longest>>20)
			}
			long = append(long, line...)
			continue
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		if len(line) > 0 && err == nil {
			if err := yield(line); err != nil {
				return err
			}
		}
		long = long[:0]
		if err == io.EOF {
			if len(line) > 0 {
				return errors.New("the answer ends within a line")
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// output buffers and counts the bytes that an encoder writes.
type output struct {
	*bufio.Writer
	to byteCounter
}

// reset makes out write to w, after n bytes.
func (out *output) reset(w io.Writer, n int64) {
	out.to = byteCounter{w, n}
	out.Reset(&out.to)
}

// byteCounter passes bytes on to its Writer, and counts them in n.
type byteCounter struct {
	io.Writer
	n int64
}

func (c *byteCounter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}
