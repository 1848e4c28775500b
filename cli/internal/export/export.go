// Package export writes lists of the API to files or streams. It follows the cursors of the list, page by page. It writes
// a file as FILE.part, and records its query and the length of its settled pages in FILE.part.json.
//
// An interrupted run continues after the last settled page. It results in the same file as an uninterrupted run over the
// same data. Parquet, and CSV with columns of entry_data, need the whole list. So their part is NDJSON, which is converted
// when it is complete. [Follow] writes the endless change feed to a stream.
package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/client"
)

// Query identifies the list to export. Run continues a part only if all fields are the same.
type Query struct {
	URL string `json:"url"`
	// List is the path of the list with its filters and its order.
	List   string `json:"list"`
	Kind   Kind   `json:"kind"`
	Format Format `json:"format"`
	// Safe makes a CSV file safe for spreadsheets: see safeCell.
	Safe bool `json:"safe,omitempty"`
	// IncludeURLs reports that page views have URLs.
	IncludeURLs bool `json:"include_urls,omitempty"`
	// Limit is how many records are exported at most; 0 is all.
	Limit int `json:"limit,omitempty"`
}

// Options configure an export.
type Options struct {
	Query Query
	// Fetch reads one page of at most limit records, as client.Client.Raw does.
	Fetch func(ctx context.Context, cursor string, limit int, receive func(client.RawPage) error) error
	// PageSize is how many records one request asks for.
	PageSize int
	// Columns, if set, are added to those of entries in CSV and Parquet. Run adapts them to the entries.
	Columns *columns.Set
	// Path is the file; empty: the export goes to Stream, page by page, and cannot be resumed.
	Path   string
	Stream io.Writer
	// Restart discards the part that an earlier run left.
	Restart bool
	// Progress, if set, is called with the number of settled records and bytes.
	Progress func(records int, bytes int64)
	// Converted, if set, is called with the number of converted records, once the list is complete.
	Converted func(records int)
}

// Result counts the exported records and bytes.
type Result struct {
	// Records counts records of the list, Bytes those of the file.
	Records int
	Bytes   int64
	// Resumed reports that the run continued the part of an earlier run.
	Resumed bool
}

// Run exports. After an error the part stays, and the same call continues it.
func Run(ctx context.Context, o Options) (result Result, err error) {
	convert, err := newConversion(&o)
	if err != nil {
		return result, err
	}
	if convert != nil {
		// Format, Safe and Columns are left out of the query: whatever is made of it, the list is the same.
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

// page writes the page after at, and returns the mark after it.
func page(ctx context.Context, o *Options, enc encoder, out sink, at mark) (mark, error) {
	limit := o.PageSize
	if o.Query.Limit > 0 {
		limit = min(limit, o.Query.Limit-at.Records)
	}
	var next mark
	current := false
	err := o.Fetch(ctx, at.Cursor, limit, func(raw client.RawPage) error {
		// It is called again if the transfer broke off, and then discards the part of the page that it has.
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

// longestLine is the longest line that an export reads into memory, in bytes. It is twice the largest MAX_RECORD_BYTES.
const longestLine = 1 << 30

// eachLine calls yield with each line of r, its end included. It refuses lines of more than
// longest bytes, so that a broken server cannot take all memory.
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
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// mark is the position up to which an export is settled.
type mark struct {
	Cursor  string `json:"cursor"`
	Records int    `json:"records"`
	Bytes   int64  `json:"bytes"`
	Done    bool   `json:"done,omitempty"`
}

// sink stores pages.
type sink interface {
	// settled returns the mark at the opening.
	settled() mark
	// rewind discards writes since the last settle and returns the writer.
	rewind() (io.Writer, error)
	// settle makes all writes durable.
	settle(mark) error
	// finish publishes the complete export. If convert is set, it converts the settled records first.
	finish(convert func(records io.ReadSeeker, to io.Writer) error) error
	// close releases the sink's resources. Settled pages stay.
	close() error
}

// byteCounter counts bytes.
type byteCounter struct {
	io.Writer
	n int64
}

func (c *byteCounter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

// growing is a file that grows by pages.
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

// records returns the settled records.
func (g *growing) records() io.ReadSeeker { return io.NewSectionReader(g.file, 0, g.at.Bytes) }

// store holds all pages until they are converted to a stream.
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

// spool withholds a page from a stream until it is complete.
type spool struct {
	file   *os.File
	stream io.Writer
}

func newSpool(stream io.Writer) (*spool, error) {
	f, err := nameless()
	return &spool{f, stream}, err
}

// nameless returns a temporary file without a name, which disappears with the process. On Windows it keeps its name until
// closeNameless, because an open file cannot be removed there.
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
