package export

import (
	"encoding/csv"
	"io"
	"regexp"
	"strings"
)

// csvWriter writes rows of CSV. If safe is set, no cell is a formula in a spreadsheet.
type csvWriter struct {
	*csv.Writer
	safe bool
}

func newCSVWriter(to io.Writer, safe bool) *csvWriter { return &csvWriter{csv.NewWriter(to), safe} }

// write writes a row. If the file is to be safe, it changes cells.
func (w *csvWriter) write(cells ...string) error {
	if w.safe {
		for i, cell := range cells {
			cells[i] = safeCell(cell)
		}
	}
	return w.Write(cells)
}

var (
	number = regexp.MustCompile(`^-?[0-9.]+([eE][+-]?[0-9]+)?$`)

	// formula matches the first character of a formula at the start of a cell. A spreadsheet that separates cells by
	// semicolons or tabs ignores quotes within a cell. So for it a cell also starts after each of these, and after a line
	// break.
	formula = regexp.MustCompile(`((?:^|[;\t\r\n])[\s\p{Z}\x{feff}"]*)([=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}])`)
)

// safeCell puts an apostrophe before each text that a spreadsheet would take for a formula, as OWASP advises against CSV
// injection. These begin with =, +, -, @ or their wide forms, also after spaces and quotes. It leaves numbers unchanged.
func safeCell(cell string) string {
	if number.MatchString(cell) {
		return cell
	}
	cell = formula.ReplaceAllString(cell, "$1'$2")
	if strings.IndexAny(cell, "\t\r\n") == 0 {
		return "'" + cell
	}
	return cell
}
