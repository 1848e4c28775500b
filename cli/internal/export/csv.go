package export

import (
	"bytes"
	"encoding/csv"
	"io"
	"regexp"
	"strings"
)

// csvWriter writes rows of CSV. If safe is set, the file is one for spreadsheets, as the console writes it. The file begins with a byte
// order mark, and its lines end with CRLF. No cell is a formula, and no cell loses digits.
type csvWriter struct {
	*csv.Writer
	to   io.Writer
	line *bytes.Buffer // of a safe file
}

func newCSVWriter(to io.Writer, safe bool) *csvWriter {
	if safe {
		line := &bytes.Buffer{}
		return &csvWriter{csv.NewWriter(line), to, line}
	}
	return &csvWriter{csv.NewWriter(to), to, nil}
}

// head writes the first row of a file.
func (w *csvWriter) head(cells ...string) error {
	if w.line != nil { // Excel takes a file without the mark for one in the code page of the machine
		if _, err := io.WriteString(w.to, "\ufeff"); err != nil {
			return err
		}
	}
	return w.write(cells...)
}

// write writes a row. If the file is to be safe, it changes cells.
func (w *csvWriter) write(cells ...string) error {
	if w.line == nil {
		return w.Write(cells)
	}
	for i, cell := range cells {
		cells[i] = safeCell(cell)
	}
	w.line.Reset()
	if err := w.Write(cells); err != nil {
		return err
	}
	w.Flush()
	// The writer's own CRLF would also change line breaks within cells.
	_, err := w.to.Write(append(bytes.TrimSuffix(w.line.Bytes(), []byte("\n")), "\r\n"...))
	return err
}

var (
	// lossy matches digits of which a spreadsheet would drop some: leading zeros, and those after the fifteenth.
	lossy = regexp.MustCompile(`^-?(0[0-9]|([0-9]\.?){16})[0-9.]*$`)

	number = regexp.MustCompile(`^-?[0-9.]+([eE][+-]?[0-9]+)?$`)

	// formula matches the first character of a formula at the start of a cell. A spreadsheet that separates cells by
	// semicolons or tabs ignores quotes within a cell. So for it a cell also starts after each of these, and after a line
	// break.
	formula = regexp.MustCompile(`((?:^|[;\t\r\n])[\s\v\p{Z}\x{feff}"]*)([=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}])`)
)

// safeCell puts an apostrophe before each text that a spreadsheet would take for a formula, as OWASP advises against CSV
// injection. These begin with =, +, -, @ or their wide forms, also after spaces and quotes. It leaves numbers unchanged,
// except those that would lose digits. safeText of services/console/web does the same: testdata/safe.json has cases for both.
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
