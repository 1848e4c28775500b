// Package csvrow turns the rows of CSV files into the records that the ingest endpoint accepts. It keeps every digit of
// numbers and every byte of text, including line breaks within quotes. It reads RFC 4180 with any one-byte delimiter, and
// lines that end with LF, CRLF or CR. It reports a malformed row with its lines, and continues with the next one.
package csvrow

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxRowBytes is the length of the longest row, in bytes.
const MaxRowBytes = 16 << 20

// Row is one record of the file.
type Row struct {
	// Line is the number of its first line, from 1. Number is that of the row, from 0 for the header.
	Line, Number int
	// Raw is the row's text in the file, with its line break. It is valid until the next call of Next.
	Raw []byte
	// Cells are its fields, unquoted.
	Cells []string
	// Fault is the reason why the row is malformed. Cells are not set then.
	Fault error
}

// Reader splits CSV into rows.
type Reader struct {
	in *bufio.Reader
	Dialect
	line, row int
	raw       []byte
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader, d Dialect) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), Dialect: d, line: 1}
}

// Position returns the numbers of the next line and row.
func (r *Reader) Position() (line, row int) { return r.line, r.row }

// Next returns the next row, and io.EOF after the last. Blank lines are part of the Raw of the row after them. At the end
// of the file, they are a row without cells and without a fault.
func (r *Reader) Next() (Row, error) {
	r.raw = r.raw[:0]
	row := Row{Line: r.line}
	start := 0 // the beginning of the row after blank lines
	for state := atStart; ; {
		chunk, err := r.in.ReadSlice(r.End)
		r.raw = append(r.raw, chunk...)
		if len(r.raw) > MaxRowBytes {
			return Row{}, fmt.Errorf("line %d: a row of more than %d MiB: is a quote not closed?", row.Line, MaxRowBytes>>20)
		}
		state = scan(state, chunk, r.Dialect)
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
			if state == quoted {
				return Row{}, fmt.Errorf("line %d: %w: all lines after it would be one row", row.Line, errOpenQuote)
			}
			return r.split(row, body), nil
		}
		if state == quoted {
			continue
		}
		if len(bytes.TrimRight(body, "\r\n")) == 0 {
			start, row.Line, state = len(r.raw), r.line, atStart
			continue
		}
		return r.split(row, body), nil
	}
}

// split numbers a row and splits it into its cells.
func (r *Reader) split(row Row, body []byte) Row {
	row.Number = r.row
	r.row++
	row.Cells, row.Fault = split(body, r.Delimiter)
	return row
}

// position is the position of a byte in a row, relative to fields and quotes.
type position int

const (
	atStart  position = iota // of a field
	unquoted                 // within a field without quotes, or after its closing quote
	quoted                   // within quotes
	closing                  // after a quote within quotes, which ends the field or is the first of two
)

// scan returns the state after p. The state determines whether a line break ends the row.
func scan(state position, p []byte, d Dialect) position {
	for _, c := range p {
		switch {
		case state == quoted:
			if c == '"' {
				state = closing
			}
		case c == '"' && (state == atStart || state == closing):
			state = quoted
		case c == d.Delimiter, c == d.End:
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
	errAfter     = errors.New("text after a closing quote")
	errUTF8      = errors.New("not valid UTF-8")
)

// split unquotes the fields of one row.
func split(row []byte, delimiter byte) ([]string, error) {
	row = bytes.TrimSuffix(row, []byte("\n"))
	row = bytes.TrimRight(row, "\r") // some programs end lines with CR CR LF
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

// Skip copies n bytes to w, up to the position where an earlier reader of the same file stopped. line and row are the next
// numbers.
func (r *Reader) Skip(w io.Writer, n int64, line, row int) error {
	r.line, r.row = line, row
	_, err := io.CopyN(w, r.in, n)
	return err
}
