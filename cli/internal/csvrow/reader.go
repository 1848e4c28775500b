// Package csvrow turns the rows of CSV files into the records that the ingest endpoint accepts. The package keeps all
// digits of numbers, and text with its line breaks. [Reader] reads RFC 4180 with any one-byte delimiter, and lines that
// end with LF, CRLF or CR. A malformed row is reported with its line, and the next row is read, unless the row is too
// long or has an open quote.
package csvrow

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxRowBytes is the maximum length of a row of CSV, or of a line of NDJSON, in bytes.
const MaxRowBytes = 16 << 20

// Row is one row of a CSV file, which may have several lines.
type Row struct {
	// Line is the number of the row's first line, from 1. Number is the number of the row, from 0 for the first row of
	// the file.
	Line, Number int
	// Raw is the row's text in the file, with its line break and the blank lines before the row. Raw is valid until the
	// next call of Next.
	Raw []byte
	// Cells are the texts of the row's cells, without their quotes.
	Cells []string
	// Fault is the reason why the row is malformed, or nil. A malformed row has no Cells.
	Fault error
}

// Reader reads the rows of a CSV file, and counts lines and rows.
type Reader struct {
	in *bufio.Reader
	Dialect
	line, row int
	raw       []byte
}

// NewReader returns a Reader of the CSV in r, which is UTF-8 in the dialect d.
func NewReader(r io.Reader, d Dialect) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), Dialect: d, line: 1}
}

// Position returns the numbers of the next line, from 1, and of the next row, from 0.
func (r *Reader) Position() (line, row int) { return r.line, r.row }

// Next returns the next row, and io.EOF after the last. Raw of a row includes the blank lines before the row. Blank
// lines at the end of the file are a row without cells and without a fault. A row that is too long or has an open quote
// is an error of Next.
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

// split gives row the next number, and sets the cells or the fault of row. body is the row's text without blank
// lines.
func (r *Reader) split(row Row, body []byte) Row {
	row.Number = r.row
	r.row++
	row.Cells, row.Fault = split(body, r.Delimiter)
	return row
}

// position is the state of [scan] in a row: where the next byte is, relative to fields and quotes.
type position int

const (
	atStart  position = iota // of a field
	unquoted                 // within a field without quotes, or after its closing quote
	quoted                   // within quotes
	closing                  // after a quote within quotes, which ends the field or is the first of two
)

// scan returns the state of the reader after the bytes p of a row. The state determines whether a line break ends the
// row.
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

// split returns the unquoted cells of one row, or the reason why the row is malformed.
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
