package send

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lectern-dev/lectern/cli/internal/csvrow"
	"github.com/lectern-dev/lectern/cli/internal/load"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// tableFlags are the flags of imports that accept CSV in addition to NDJSON. A flag with the tag csv is an error for
// a file of NDJSON.
type tableFlags struct {
	Project   string   `short:"p" env:"LECTERN_PROJECT_ID" help:"The project of CSV rows that name none. NDJSON records name theirs." placeholder:"ID"`
	Format    string   `enum:"auto,ndjson,csv" default:"auto" help:"ndjson, csv, or auto: NDJSON when the file begins with a brace." placeholder:"FORMAT"`
	Delimiter string   `csv:"" default:"auto" help:"The separator of CSV cells: one character, tab, or auto: the one of , ; tab and | that fits the first rows." placeholder:"CHAR"`
	Set       []string `csv:"" sep:"none" help:"Give a field of CSV rows: text, in which {COLUMN} stands for a cell, {#1} for that of the first column, {#hash} for a hash of the row, and {#row} for its number." placeholder:"FIELD=VALUE"`
	Skip      []string `csv:"" sep:"none" help:"Omit all columns with this header, or #N." placeholder:"COLUMN"`

	SkipRows   int    `csv:"" default:"0" min:"0" help:"Rows of CSV before the header. Default: ${default}." placeholder:"N"`
	Encoding   string `csv:"" help:"The encoding of CSV, such as windows-1252. Default: UTF-8, or UTF-16 with its mark." placeholder:"NAME"`
	TimeFormat string `csv:"" help:"How CSV columns write times: iso, text, dmy, mdy, mail, unix, unix-ms, excel, or a pattern such as '%d %b %Y %H:%M'." placeholder:"FORMAT"`
	TimeZone   string `csv:"" help:"The zone of times in CSV columns that name none, such as Europe/Berlin. Default: UTC." placeholder:"ZONE"`
}

type importEntries struct {
	importFlags
	tableFlags
	shell.ServerFlags
	Keep    []string `csv:"" sep:"none" help:"Keep a column in entry_data although --set uses it." placeholder:"COLUMN"`
	Text    []string `csv:"" sep:"none" help:"Keep a column's cells as text, even numbers." placeholder:"COLUMN"`
	Decimal string   `csv:"" default:"." help:"The decimal sign of numbers: a dot, or a comma as in 1.234,50. Default: ${default}." placeholder:"SIGN"`
	As      string   `csv:"" enum:",typeform,google-forms,microsoft-forms,tally,surveymonkey,qualtrics,jotform" default:"" help:"CSV as a tool exports it: typeform, google-forms, microsoft-forms, tally, surveymonkey, qualtrics or jotform. It gives entry_id, contact_id and the times, unless --set does. Files without ids need an API key too." placeholder:"TOOL"`
}

// Help returns the text of lectern import entries --help: how columns become fields, and examples.
func (importEntries) Help() string {
	return `NDJSON has one entry a line, as the API returns it. CSV has a header. A column with the name of a field sets that field. --set sets the others, from columns or constants. updated_at is created_at unless it is set. All other columns become entry_data, a JSON object in the order of the header. Integers and decimals become numbers with the same digits ("007" stays text), true and false booleans, an empty cell null, anything else text. Name a column by its header, or by its number: {#1}. Lines may end with LF, CRLF or CR.
` + importHelp + `
Examples:

	lectern import entries --env-file .lectern/demo.env entries.ndjson
	lectern import entries survey.csv --rejects rejects.ndjson \
	  --set entry_id='survey-{id}' --set contact_id='{email}' --keep email \
	  --set group_id=grp_survey --set embeddable_id=emb_survey \
	  --set created_at='{submitted}'
	lectern import entries --dry-run survey.csv --time-format dmy --time-zone Europe/Berlin \
	  --set entry_id='row-{#hash}' --set created_at='{date} {time}' … | head -3
	lectern import entries --as typeform responses.csv --project pr_shop \
	  --set group_id=grp_survey --set embeddable_id=emb_survey
	zcat entries.ndjson.gz | lectern import entries -`
}

// Run sends the entries in the files, which are NDJSON or CSV.
func (i *importEntries) Run(s *shell.Session, k *kong.Context) error {
	if i.Decimal != "." && i.Decimal != "," {
		return shell.Usagef("--decimal was given as %q; allowed: . or ,", i.Decimal)
	}
	columns, former := csvrow.Options{Keep: i.Keep, Text: i.Text, Comma: i.Decimal == ","}, formerRows{ServerFlags: i.ServerFlags, session: s, dry: i.DryRun}
	if i.As != "" {
		columns.Former = former.read
	}
	defer former.note()
	return runTableImport(s, k, i.importFlags, i.tableFlags, i.As, csvrow.Entries(), columns)
}

type importEvents struct {
	importFlags
	tableFlags
}

// Help returns the text of lectern import events --help: how columns become fields, and examples.
func (importEvents) Help() string {
	return `NDJSON has one event a line, as the API returns it, and may add event_id and url. CSV has a header with the names of an event's fields. --set sets the others, from columns or constants. An empty cell is null. Omit columns that are not fields with --skip.
` + importHelp + `
Examples:

	lectern import events --env-file .lectern/demo.env events.ndjson
	lectern import events views.csv --set event_type=flowpage.viewed --set view_type=flowpage`
}

// Run sends the events in the files, which are NDJSON or CSV.
func (i *importEvents) Run(s *shell.Session, k *kong.Context) error {
	return runTableImport(s, k, i.importFlags, i.tableFlags, "", csvrow.Events(), csvrow.Options{})
}

// runTableImport sends files that are NDJSON or CSV. as is the name of the tool that made the CSV, or "". shape is
// the form of a record, and columns has options that table does not have.
func runTableImport(s *shell.Session, k *kong.Context, f importFlags, table tableFlags, as string, shape csvrow.Shape, columns csvrow.Options) error {
	delimiter, err := parseDelimiter(table.Delimiter)
	if err != nil {
		return err
	}
	if err := csvrow.CheckTimes(table.TimeFormat, table.TimeZone); err != nil {
		return shell.Usage(err)
	}
	tool, err := csvrow.FindTool(as)
	if err != nil {
		return shell.Usage(err)
	}
	columns.Set, columns.Skip, columns.TimeFormat, columns.TimeZone = table.Set, table.Skip, table.TimeFormat, table.TimeZone
	if table.Project != "" {
		columns.Fallback = map[string]string{"project_id": table.Project}
	}
	var csvFlags []string
	for _, given := range k.Path {
		if given.Flag != nil && given.Flag.Tag.Has("csv") {
			csvFlags = append(csvFlags, "--"+given.Flag.Name)
		}
	}
	return runImport(s, f, load.Options{Format: load.Format(table.Format), Delimiter: delimiter, Shape: shape, Columns: columns, CSVFlags: csvFlags,
		Tool: tool, SkipRows: table.SkipRows, Encoding: table.Encoding})
}

// parseDelimiter returns the byte of --delimiter, or 0 for auto. A value that is not tab, \t or a single byte is a
// usage error, and so is a quote or a line break.
func parseDelimiter(text string) (byte, error) {
	switch {
	case text == "auto":
		return 0, nil
	case text == "tab" || text == `\t`:
		return '\t', nil
	case len(text) == 1 && !strings.ContainsAny(text, "\"\r\n"):
		return text[0], nil
	}
	return 0, shell.Usagef("--delimiter was given as %q; allowed: one character, tab, or auto", text)
}
