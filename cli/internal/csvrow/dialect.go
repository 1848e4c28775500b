package csvrow

import "bytes"

// Dialect is the form of a CSV file: the delimiter of its cells, and the end of its lines.
type Dialect struct {
	// Delimiter separates cells.
	Delimiter byte
	// End is the last byte of a line: LF, or CR if lines end with CR alone.
	End byte
}

// delimiters are the delimiters that [Guess] tries, the most likely first.
var delimiters = []byte{',', ';', '\t', '|'}

// Guess returns the dialect of a file that begins with start. If delimiter is 0, Guess selects the delimiter with which
// most of the first 100 rows have as many cells as the header. If no delimiter gives the header several cells, the
// delimiter is a comma.
func Guess(start []byte, delimiter byte) Dialect {
	d := Dialect{Delimiter: delimiter, End: lineEnd(start)}
	if delimiter != 0 {
		return d
	}
	d.Delimiter = ','
	best, cells := 0, 1
	for _, candidate := range delimiters {
		even, width := fit(start, Dialect{candidate, d.End})
		if width > 1 && (even > best || even == best && width > cells) {
			d.Delimiter, best, cells = candidate, even, width
		}
	}
	return d
}

// lineEnd returns the last byte of the lines in start. The byte is CR if start has CR but no LF outside of quotes,
// and LF otherwise.
func lineEnd(start []byte) byte {
	quoted, end := false, byte('\n')
	for _, c := range start {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\n':
			return '\n'
		case c == '\r':
			end = '\r'
		}
	}
	return end
}

// fit reads start in the dialect d. even is how many of the first 100 rows have as many cells as the header. width is
// the number of the header's cells.
func fit(start []byte, d Dialect) (even, width int) {
	r := NewReader(bytes.NewReader(start), d)
	for range 100 {
		row, err := r.Next()
		if err != nil {
			break
		}
		if row.Cells == nil {
			continue
		}
		if width == 0 {
			width = len(row.Cells)
		}
		if len(row.Cells) == width {
			even++
		}
	}
	return even, width
}
