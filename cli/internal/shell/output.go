package shell

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
	"github.com/tidwall/gjson"
)

// OutputFlags is the flag --output, which selects the format in which a command prints records.
type OutputFlags struct {
	Output string `short:"o" enum:"table,json,ndjson," default:"" help:"How to print: table, json (indented) or ndjson (a line for each record). Default: ${output_default=table on a terminal, else ndjson}." placeholder:"FORMAT"`
}

// Format returns the format of --output: table, json or ndjson. Without the flag, the format is table if standard
// output is a terminal, and ndjson otherwise.
func (f OutputFlags) Format(s *Session) string {
	switch {
	case f.Output != "":
		return f.Output
	case s.Width > 0:
		return "table"
	}
	return "ndjson"
}

// Print prints body, which is a record or a list of records in JSON, in the format of --output. In json and ndjson,
// texts and numbers are printed exactly as in body. On a terminal, a note on standard error replaces empty output.
func (f OutputFlags) Print(s *Session, body []byte) error {
	var out bytes.Buffer
	var err error
	switch f.Format(s) {
	case "json":
		err = json.Indent(&out, bytes.TrimSpace(body), "", "  ")
		out.WriteByte('\n')
	case "ndjson":
		err = writeLines(&out, body)
	default:
		err = writeTable(&out, body, s.Width)
	}
	if err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	if out.Len() == 0 && s.Width > 0 {
		_, err = fmt.Fprintln(s.Err, "No records.")
		return err
	}
	_, err = out.WriteTo(s.Out)
	return err
}

// PrintOne prints the record body in the format of --output, or returns err if err is not nil. A command passes the
// result of a client's method to PrintOne.
func (f OutputFlags) PrintOne(s *Session, body []byte, err error) error {
	if err != nil {
		return err
	}
	return f.Print(s, body)
}

// PrintValue encodes v as JSON, and prints the JSON as [OutputFlags.Print] does.
func (f OutputFlags) PrintValue(s *Session, v any) error {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	return f.Print(s, body.Bytes())
}

// writeLines writes each record of body as one line of NDJSON.
func writeLines(out *bytes.Buffer, body []byte) error {
	for _, record := range Records(body) {
		if err := json.Compact(out, []byte(record.Raw)); err != nil {
			return err
		}
		out.WriteByte('\n')
	}
	return nil
}

// Records returns the elements of body if body is a JSON array, and body as the only record otherwise.
func Records(body []byte) []gjson.Result {
	parsed := gjson.ParseBytes(body)
	if !parsed.IsArray() {
		return []gjson.Result{parsed}
	}
	return parsed.Array()
}

// widestCell is the maximum width of a column of a list on a terminal, in character cells of the terminal.
const widestCell = 40

// writeTable writes a list as a table with a column for each field of its first record, except project_id. writeTable
// writes a single record as a table with a row for each field. Lines are cut at width, in columns of the terminal; 0
// is no limit.
func writeTable(out *bytes.Buffer, body []byte, width int) error {
	if !json.Valid(body) {
		return fmt.Errorf("%.100q", body)
	}
	var rows [][]string
	all := Records(body)
	cut := 0
	if !gjson.ParseBytes(body).IsArray() {
		all[0].ForEach(func(name, value gjson.Result) bool {
			rows = append(rows, []string{name.String(), cell(value)})
			return true
		})
	} else if len(all) > 0 {
		var names []string
		var head []string
		all[0].ForEach(func(name, _ gjson.Result) bool {
			if name.String() != "project_id" { // it is the same in all rows
				names, head = append(names, name.String()), append(head, strings.ToUpper(name.String()))
			}
			return true
		})
		rows = append(rows, head)
		for _, record := range all {
			fields := record.Map()
			var row []string
			for _, name := range names {
				row = append(row, cell(fields[name]))
			}
			rows = append(rows, row)
		}
		if width > 0 {
			cut = widestCell
		}
	}
	return Tabulate(out, rows, cut, width)
}

// Tabulate writes rows in aligned columns, and shortens the cells of rows in place. cellWidth and lineWidth are the
// maximum widths of a cell and of a line, in columns of a terminal; 0 is no limit. East Asian wide characters take two
// columns, and combining marks take none.
func Tabulate(out io.Writer, rows [][]string, cellWidth, lineWidth int) error {
	const gap = "  "
	var widths []int // of the columns
	for _, row := range rows {
		for i, cell := range row {
			row[i] = shortened(cell, cellWidth)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(runewidth.FillRight(cell, widths[i]) + gap)
		}
		if _, err := fmt.Fprintln(out, shortened(strings.TrimRight(line.String(), " "), lineWidth)); err != nil {
			return err
		}
	}
	return nil
}

// shortened cuts text to at most width columns of a terminal, and ends cut text with "…"; 0 is no limit. shortened
// does not separate a character from its combining marks.
func shortened(text string, width int) string {
	if width == 0 {
		return text
	}
	return runewidth.Truncate(text, width, "…")
}

// cell returns a value of a record on one line, or "-" for null and empty text. Characters that are not printable
// become spaces, so the text of a record cannot control the terminal.
func cell(value gjson.Result) string {
	text := value.String()
	if value.Type == gjson.Number {
		text = value.Raw // with its digits
	}
	if value.Type == gjson.Null || text == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}
