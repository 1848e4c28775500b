package export

import (
	"bytes"
	"encoding/csv"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

// csvWriter writes rows of CSV. A file that is safe for spreadsheets begins with a byte order mark, its rows end with
// CRLF, and [safeCell] protects its cells. The files of the console are alike.
type csvWriter struct {
	to   io.Writer
	safe bool
	long func() // called for each cell of a safe file that is longer than longestCell
	line bytes.Buffer
	csv  *csv.Writer // to line
}

// longestCell is how many characters a cell of Excel holds, in units of UTF-16. Excel cuts longer cells.
const longestCell = 32_767

func newCSVWriter(to io.Writer, safe bool, long func()) *csvWriter {
	w := &csvWriter{to: to, safe: safe, long: long}
	w.csv = csv.NewWriter(&w.line)
	return w
}

// head writes the first row of a file, after a byte order mark if the file is to be safe.
func (w *csvWriter) head(cells ...string) error {
	if w.safe { // Excel takes a file without the mark for one in the code page of the machine
		if _, err := io.WriteString(w.to, "\ufeff"); err != nil {
			return err
		}
	}
	return w.write(slices.Clone(cells)...)
}

// write writes a row. If the file is to be safe, write first replaces each element of cells by its [safeCell].
func (w *csvWriter) write(cells ...string) error {
	if w.safe {
		for i, cell := range cells {
			cells[i] = safeCell(cell)
			if w.long != nil && len(cells[i]) > longestCell && len(utf16.Encode([]rune(cells[i]))) > longestCell {
				w.long()
			}
		}
	}
	w.line.Reset()
	if err := w.csv.Write(cells); err != nil {
		return err
	}
	w.csv.Flush()
	row := w.line.Bytes()
	if w.safe { // the writer's own CRLF would also change line breaks within cells
		row = append(bytes.TrimSuffix(row, []byte("\n")), "\r\n"...)
	}
	_, err := w.to.Write(row)
	return err
}

var (
	// lossy matches digits of which a spreadsheet would drop some: leading zeros, and digits after the fifteenth.
	lossy = regexp.MustCompile(`^-?(0[0-9]|([0-9]\.?){16})[0-9.]*$`)

	number = regexp.MustCompile(`^-?[0-9.]+([eE][+-]?[0-9]+)?$`)

	// formula matches the first character of a formula at the start of a cell. A spreadsheet that separates cells by
	// semicolons or tabs ignores quotes within a cell. So a cell may also start after a semicolon, a tab or a line
	// break.
	formula = regexp.MustCompile(`((?:^|[;\t\r\n])[\s\v\p{Z}\x{feff}"]*)([=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}])`)
)

// safeCell puts an apostrophe before text that a spreadsheet would read as a formula, as OWASP advises against CSV
// injection. Such text begins with =, +, -, @ or their wide forms, even after spaces and quotes. safeCell also protects
// a tab or line break at the start, and a number of which a spreadsheet would drop digits. Other numbers without a plus
// sign stay unchanged.
//
// safeText of services/console/web does the same: testdata/safe.json has cases for both functions.
func safeCell(cell string) string {
	if lossy.MatchString(cell) {
		return "'" + cell
	}
	if number.MatchString(cell) {
		return cell
	}
	cell = formula.ReplaceAllString(cell, "$1'$2")
	if strings.IndexAny(cell, "\t\r\n") == 0 {
		return "'" + cell
	}
	return cell
}
