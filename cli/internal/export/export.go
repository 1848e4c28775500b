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
	"os"
	"runtime"

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
	convert, err := newConversion(&o)
	if err != nil {
		return result, err
	}
	if convert != nil {
		// The part is the same NDJSON for each Format and Safe, so a run with another format may continue the part.
		o.Query.Format, o.Query.Safe = NDJSON, false
	}
	enc, err := newEncoder(o.Query)
	if err != nil {
		return result, err
	}
	var out sink
	switch {
	case o.Path != "":
		out, err = openPart(o.Path, o.Query, o.Restart)
	case convert != nil:
		out, err = newStore(o.Stream)
	default:
		out, err = newSpool(o.Stream)
	}
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, out.close()) }()

	at := out.settled()
	result.Resumed = at.Bytes > 0
	for {
		result.Records, result.Bytes = at.Records, at.Bytes
		if o.Progress != nil {
			o.Progress(at.Records, at.Bytes)
		}
		if at.Done && convert == nil {
			return result, out.finish(nil)
		}
		if at.Done {
			err := out.finish(func(records io.ReadSeeker, to io.Writer) error {
				counted := &byteCounter{Writer: to}
				buffered := bufio.NewWriterSize(counted, 256<<10)
				err := errors.Join(convert(ctx, records, buffered), buffered.Flush())
				result.Bytes = counted.n
				return err
			})
			return result, err
		}
		if at, err = page(ctx, &o, enc, out, at); err != nil {
			return result, err
		}
		if err := out.settle(at); err != nil {
			return result, err
		}
	}
}

// page fetches the page after the mark at, writes its records to out, and returns the mark after the page. After an
// error, page returns at.
func page(ctx context.Context, o *Options, enc encoder, out sink, at mark) (mark, error) {
	limit := o.PageSize
	if o.Query.Limit > 0 {
		limit = min(limit, o.Query.Limit-at.Records)
	}
	var next mark
	current := false
	err := o.Fetch(ctx, at.Cursor, limit, func(raw client.RawPage) error {
		// Fetch calls this function again if the transfer broke off. rewind then discards the incomplete page.
		w, err := out.rewind()
		if err != nil {
			return err
		}
		next = mark{Cursor: raw.NextCursor, Records: at.Records, Bytes: at.Bytes}
		current = raw.Current
		buffered := bufio.NewWriterSize(w, 256<<10)
		put := func(p []byte) error {
			next.Bytes += int64(len(p))
			_, err := buffered.Write(p)
			return err
		}
		if at.Bytes == 0 {
			if err := put(enc.header()); err != nil {
				return err
			}
		}
		var row []byte
		err = eachLine(raw.Body, longestLine, func(line []byte) error {
			if row, err = enc.append(row[:0], line); err != nil {
				return fmt.Errorf("record %d: %w", next.Records+1, err)
			}
			next.Records++
			return put(row)
		})
		if err != nil {
			return err
		}
		return buffered.Flush()
	})
	if err != nil {
		return at, err
	}
	switch {
	case next.Cursor == "", o.Query.Limit > 0 && next.Records >= o.Query.Limit,
		o.Query.Kind == Events && current: // the feed has a cursor on every page
		next.Done, next.Cursor = true, ""
	case next.Cursor == at.Cursor:
		return at, errors.New("the server answers the same cursor again: the list would never end")
	}
	return next, nil
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

// mark is the position up to which an export is settled: the cursor of the next page, and the records and bytes so
// far. Done reports whether the list is complete.
type mark struct {
	Cursor  string `json:"cursor"`
	Records int    `json:"records"`
	Bytes   int64  `json:"bytes"`
	Done    bool   `json:"done,omitempty"`
}

// sink stores the pages of an export, in a file or on the way to a stream.
type sink interface {
	// settled returns the mark after which the export begins or continues.
	settled() mark
	// rewind discards all writes since the last settle, and returns the writer for the next page.
	rewind() (io.Writer, error)
	// settle keeps all writes since the last settle, on disk or by sending them to the stream. The given mark is the
	// position after these writes.
	settle(mark) error
	// finish publishes the complete export. If convert is not nil, finish first converts the settled records with
	// convert.
	finish(convert func(records io.ReadSeeker, to io.Writer) error) error
	// close releases the sink's resources. The settled pages of a file stay for the next run.
	close() error
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

// growing is a file to which pages are appended. at is the mark after the last settled page.
type growing struct {
	file *os.File
	at   mark
}

func (g *growing) settled() mark { return g.at }

func (g *growing) rewind() (io.Writer, error) {
	if err := g.file.Truncate(g.at.Bytes); err != nil {
		return nil, err
	}
	_, err := g.file.Seek(g.at.Bytes, io.SeekStart)
	return g.file, err
}

// records returns a reader of the settled pages, from the first record.
func (g *growing) records() io.ReadSeeker { return io.NewSectionReader(g.file, 0, g.at.Bytes) }

// store is a sink that holds all pages in a temporary file until finish converts the pages to a stream.
type store struct {
	growing
	stream io.Writer
}

func newStore(stream io.Writer) (*store, error) {
	f, err := nameless()
	return &store{growing{file: f}, stream}, err
}

func (s *store) settle(at mark) error {
	s.at = at
	return nil
}

func (s *store) finish(convert func(io.ReadSeeker, io.Writer) error) error {
	return convert(s.records(), s.stream)
}

func (s *store) close() error { return closeNameless(s.file) }

// spool is a sink that holds each page in a temporary file until the page is complete, and then sends the page to a
// stream.
type spool struct {
	file   *os.File
	stream io.Writer
}

func newSpool(stream io.Writer) (*spool, error) {
	f, err := nameless()
	return &spool{f, stream}, err
}

// nameless returns a temporary file without a name, which disappears with the process. On Windows an open file cannot
// be removed, so the file keeps its name until closeNameless.
func nameless() (*os.File, error) {
	f, err := os.CreateTemp("", "lectern-export-*")
	if err == nil {
		_ = os.Remove(f.Name())
	}
	return f, err
}

func closeNameless(f *os.File) error {
	err := f.Close()
	if runtime.GOOS == "windows" {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

func (s *spool) settled() mark { return mark{} }

func (s *spool) rewind() (io.Writer, error) {
	if err := s.file.Truncate(0); err != nil {
		return nil, err
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

func (s *spool) settle(mark) error {
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(s.stream, s.file)
	return err
}

func (s *spool) finish(func(io.ReadSeeker, io.Writer) error) error { return nil }
func (s *spool) close() error                                      { return closeNameless(s.file) }
