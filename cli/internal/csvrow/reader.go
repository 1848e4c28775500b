// Package csvrow turns the rows of CSV files into the records that the ingest endpoint takes. It keeps
// what was written: numbers to the digit, text to the byte, line ends within quotes included. It reads
// RFC 4180 with any one-byte delimiter, and does not guess at what is malformed: such a row is
// reported with its lines, and the next one is read.
package csvrow

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxRowBytes is how long a row may be.
const MaxRowBytes = 16 << 20

// Row is one record of the file.
type Row struct {
	// Line is the number of its first line, from 1.
	Line int
	// Raw is the row as it stands in the file, with its line end. It is valid until the next row is read.
	Raw []byte
	// Cells are its fields, unquoted.
	Cells []string
	// Fault says what is wrong with the row; Cells are not set then.
	Fault error
}

// Reader splits CSV into rows.
type Reader struct {
	in        *bufio.Reader
	delimiter byte
	line      int
	raw       []byte
}

// NewReader reads rows from r whose first line has the number line.
func NewReader(r io.Reader, delimiter byte, line int) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), delimiter: delimiter, line: line}
}

// Line returns the number of the line that comes next.
func (r *Reader) Line() int { return r.line }

// Next returns the next row, io.EOF after the last. Lines that hold nothing are part of the Raw of
// the row behind them; at the end of the file they come as a row without cells and without fault.
func (r *Reader) Next() (Row, error) {
	r.raw = r.raw[:0]
	row := Row{Line: r.line}
	start := 0 // where the row begins behind blank lines
	for state := atStart; ; {
		chunk, err := r.in.ReadSlice('\n')
		r.raw = append(r.raw, chunk...)
		if len(r.raw) > MaxRowBytes {
			return Row{}, fmt.Errorf("line %d: a row of more than %d MiB: is a quote not closed?", row.Line, MaxRowBytes>>20)
		}
		state = scan(state, chunk, r.delimiter)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && err != io.EOF {
			return Row{}, err
		}
		if err == nil {
			r.line++
		}
		row.Raw = r.raw
		body := r.raw[start:]
		if err == io.EOF {
			if len(r.raw) == 0 {
				return Row{}, io.EOF
			}
			if len(body) == 0 {
				return row, nil
			}
			row.Cells, row.Fault = split(body, r.delimiter)
			return row, nil
		}
		if state == quoted {
			continue
		}
		if len(bytes.TrimRight(body, "\r\n")) == 0 {
			start, row.Line, state = len(r.raw), r.line, atStart
			continue
		}
		row.Cells, row.Fault = split(body, r.delimiter)
		return row, nil
	}
}

// Where in a row a byte stands.
type position int

const (
	atStart  position = iota // of a field
	unquoted                 // within a field that has no quotes, or behind its closing one
	quoted                   // within quotes
	closing                  // behind a quote within quotes: its end, or the first of two
)

// scan follows p from state on, to know whether a line's end ends the row.
func scan(state position, p []byte, delimiter byte) position {
	for _, c := range p {
		switch {
		case state == quoted:
			if c == '"' {
				state = closing
			}
		case c == '"' && (state == atStart || state == closing):
			state = quoted
		case c == delimiter, c == '\n':
			state = atStart
		default:
			state = unquoted
		}
	}
	return state
}

var (
	errBareQuote = errors.New("a quote within a field that does not begin with one")
	errOpenQuote = errors.New("a quoted field that is not closed")
	errAfter     = errors.New("text behind a closing quote")
	errUTF8      = errors.New("not valid UTF-8")
)

// split unquotes the fields of one row.
func split(row []byte, delimiter byte) ([]string, error) {
	row = bytes.TrimSuffix(row, []byte("\n"))
	row = bytes.TrimSuffix(row, []byte("\r"))
	if !utf8.Valid(row) {
		return nil, errUTF8
	}
	var cells []string
	for {
		if len(row) == 0 || row[0] != '"' {
			cell, rest, more := bytes.Cut(row, []byte{delimiter})
			if bytes.IndexByte(cell, '"') >= 0 {
				return nil, errBareQuote
			}
			cells = append(cells, string(cell))
			if !more {
				return cells, nil
			}
			row = rest
			continue
		}
		row = row[1:]
		var cell []byte
		for {
			end := bytes.IndexByte(row, '"')
			if end < 0 {
				return nil, errOpenQuote
			}
			cell = append(cell, row[:end]...)
			row = row[end+1:]
			if len(row) == 0 || row[0] != '"' {
				break
			}
			cell = append(cell, '"')
			row = row[1:]
		}
		cells = append(cells, string(cell))
		switch {
		case len(row) == 0:
			return cells, nil
		case row[0] != delimiter:
			return nil, errAfter
		}
		row = row[1:]
	}
}

// Skip passes n bytes on to w, to where an earlier reader of the same file stopped; the next line has
// the number line.
func (r *Reader) Skip(w io.Writer, n int64, line int) error {
	r.line = line
	_, err := io.CopyN(w, r.in, n)
	return err
}
