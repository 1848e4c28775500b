package read

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/export"
	"github.com/lectern-dev/lectern/cli/internal/progress"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/columns"
)

// Export is the command group lectern export, which writes whole lists to files or to standard output.
type Export struct {
	Entries   exportEntries            `cmd:"" help:"Write the project's entries to a file."`
	Events    exportList[eventList]    `cmd:"" help:"Write the events of all the project's entries to a file."`
	PageViews exportList[pageViewList] `cmd:"" help:"Write the page views of the project's entries to a file."`

	Embeddables exportList[embeddableList] `cmd:"" help:"Write the project's embeddables to a file."`
	Versions    exportList[versionList]    `cmd:"" help:"Write the versions of one embeddable to a file."`
	Experiments exportList[experimentList] `cmd:"" help:"Write the project's experiments to a file."`
}

// exportList is a command of lectern export, such as lectern export events, which writes the whole list L.
type exportList[L list] struct {
	API   shell.APIFlags `embed:""`
	List  L              `embed:""`
	Flags exportFlags    `embed:""`
}

// Help returns the text of the command's --help, which belongs to the list L.
func (e exportList[L]) Help() string { return e.List.about().export }

// Run exports the records of the list L that the flags select.
func (e *exportList[L]) Run(s *shell.Session) error {
	return e.Flags.export(s, e.API, e.List, nil)
}

// exportEntries is the command lectern export entries. Only this export may have columns for the keys of entry_data.
type exportEntries struct {
	Entries exportList[entryList] `embed:""`
	flattenFlags
}

// Help returns the text of lectern export entries --help: the columns of CSV and Parquet, and examples.
func (e exportEntries) Help() string { return e.Entries.Help() }

// Run exports the entries, with the columns of --flatten if that flag is set.
func (e *exportEntries) Run(s *shell.Session) error {
	set, err := e.set()
	if err != nil {
		return err
	}
	return e.Entries.Flags.export(s, e.Entries.API, e.Entries.List, set)
}

type flattenFlags struct {
	Flatten bool   `help:"Add a column for each top-level key of entry_data; csv and parquet only."`
	Columns string `default:"auto" help:"With --flatten, which keys become columns: auto (all), or a FILE that lists them as JSON. Default: ${default}." placeholder:"auto|FILE"`
}

// set returns the columns that --flatten and --columns add to an export, or nil for none.
func (f flattenFlags) set() (*columns.Set, error) {
	switch {
	case f.Columns == "auto" && f.Flatten:
		return columns.Choice{All: true}.Set(), nil
	case f.Columns == "auto":
		return nil, nil
	case !f.Flatten:
		return nil, shell.Usagef("--columns was given without --flatten: give both")
	}
	choice, err := readColumns(f.Columns, "auto or a file")
	if err != nil {
		return nil, err
	}
	return choice.Set(), nil
}

type exportFlags struct {
	Out      string `type:"path" help:"The file to write, readable by its owner alone; without it, standard output." placeholder:"FILE"`
	Output   string `short:"o" enum:"ndjson,csv,parquet," default:"" help:"ndjson, csv or, for entries and events, parquet. Default: by the ending of --out, else ndjson." placeholder:"FORMAT"`
	Safe     bool   `help:"Make a CSV file for spreadsheets: put an apostrophe before each text that would be a formula and before digits that a spreadsheet would drop, begin with a byte order mark, and end lines with CRLF. Default: texts are unchanged."`
	Limit    int    `help:"End after so many records. Default: all." placeholder:"N"`
	PageSize int    `default:"5000" help:"Records a request; it may differ from run to run. Default: ${default}." placeholder:"N"`
	NoResume bool   `help:"Start again, although a cut run of the same query could be continued."`
	Retries  int    `default:"10" min:"0" help:"How often a request is retried (429, 503, broken connections), after the time that the server asks for. Default: ${default}." placeholder:"N"`
}

const exportHelp = `
The command writes FILE.part, and its progress to FILE.part.json. FILE appears when it is complete. If the command was cut, run it again: it continues after the last complete page, and the file is the same as that of an uncut run. Records that change while an export runs come as they are when their page is read.
`

// convertHelp is the help for exports that are converted after all records were read. Its argument names these
// exports.
const convertHelp = `
%s, FILE.part is NDJSON. When it is complete, the command converts it to FILE.part.out, which becomes FILE. So the disk needs room for both. Without --out, the NDJSON is in the folder for temporary files (TMPDIR). If the conversion was cut, run the command again: it does not read the API again.
`

// format returns the format of an export, by --output or by the name of the file. o is the export so far, and what
// names its records. A format that the export cannot have is a usage error.
func (f exportFlags) format(s *shell.Session, o export.Options, what string) (export.Format, error) {
	format := export.Format(f.Output)
	switch ext := strings.ToLower(filepath.Ext(f.Out)); {
	case format != "":
	case ext == ".csv":
		format = export.CSV
	case ext == ".parquet":
		format = export.Parquet
	default:
		format = export.NDJSON
	}
	switch kind := o.Query.Kind; {
	case format == export.Parquet && kind != export.Entries && kind != export.Events:
		return "", shell.Usagef("%s cannot be written as parquet; allowed: ndjson, csv. Give --output, or --out another name", what)
	case format == export.Parquet && f.Out == "" && s.Width > 0:
		return "", shell.Usagef("parquet was asked for on a terminal; allowed: ndjson, csv. Give --out FILE, or write into a pipe")
	case format != export.CSV && f.Safe:
		return "", shell.Usagef("--safe was given with the format %s; allowed: csv. Give --output csv, or an --out that ends with .csv", format)
	case format == export.NDJSON && o.Columns != nil:
		return "", shell.Usagef("--flatten was given with the format ndjson; allowed: csv, parquet. Give --output, or an --out that ends with .csv or .parquet")
	}
	return format, nil
}

// export exports the list l with the columns of set, which may be nil, and shows the progress.
func (f exportFlags) export(s *shell.Session, api shell.APIFlags, l list, set *columns.Set) error {
	list, what := l.of(api.Project), l.about().records
	o := export.Options{Columns: set, Query: l.exported()}
	o.Query.URL, o.Query.List, o.Query.Limit, o.Query.Safe = api.URL, list.String(), f.Limit, f.Safe
	var err error
	if o.Query.Format, err = f.format(s, o, what); err != nil {
		return err
	}
	if o.Query.Format == export.Parquet && s.Environ["GOMEMLIMIT"] == "" { // else the runtime has read it
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	}
	bar := progress.Count(s.Err, s.Quiet, int64(f.Limit))
	defer bar.Done()
	reader, err := openerOf(api, l)(shell.Patient(f.Retries+1), bar)
	if err != nil {
		return err
	}
	o.Fetch = func(ctx context.Context, cursor string, limit int, receive func(client.RawPage) error) error {
		return reader.Raw(ctx, list, cursor, limit, receive)
	}
	o.PageSize, o.Path, o.Stream, o.Restart = f.PageSize, f.Out, s.Out, f.NoResume
	total := 0
	o.Progress = func(records int, bytes int64) {
		total = records
		bar.Set(int64(records), "%d %s, %s", records, what, size(bytes))
	}
	o.Converted = func(records int) { bar.Set(int64(records), "%d of %d %s as %s", records, total, what, o.Query.Format) }
	long := false
	o.Long = func() { long = true }
	result, err := export.Run(s.Context, o)
	bar.Done()
	if err != nil {
		if result.Records > 0 && f.Out != "" && !errors.Is(err, io.ErrShortWrite) {
			s.Note("%d %s are complete in %s.part. Run the command again to continue.", result.Records, what, f.Out)
		}
		return err
	}
	if long {
		s.Note("There are cells of more than 32,767 characters, which Excel cuts off: read them as NDJSON or Parquet, or with another program.")
	}
	if o.Columns != nil {
		for _, remark := range columns.Remarks(map[string]*columns.Set{"": o.Columns}) {
			s.Note("%s", remark)
		}
		for _, m := range o.Columns.Misfits() {
			s.Note("%s", m.Note(""))
		}
	}
	if f.Out != "" {
		went := ""
		if result.Resumed {
			went = ", going on with an earlier run"
		}
		s.Note("Exported %d %s (%s) to %s%s.", result.Records, what, size(result.Bytes), f.Out, went)
	}
	return nil
}
