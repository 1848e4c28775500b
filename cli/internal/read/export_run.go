package read

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/cli/internal/export"
	"github.com/lectern-dev/lectern/cli/internal/progress"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

type exportFlags struct {
	Out      string `type:"path" help:"The file to write, readable by its owner alone; without it, standard output." placeholder:"FILE"`
	Output   string `short:"o" enum:"ndjson,csv,parquet," default:"" help:"ndjson, csv or, for entries and events, parquet. Default: by the ending of --out, else ndjson." placeholder:"FORMAT"`
	Safe     bool   `help:"Make a CSV file for spreadsheets: put an apostrophe before each text that would be a formula and before digits that a spreadsheet would drop, begin with a byte order mark, and end lines with CRLF. Default: texts are unchanged."`
	Limit    int    `help:"End after so many records. Default: all." placeholder:"N"`
	PageSize int    `default:"5000" help:"Records a request; it may differ from run to run. Default: ${default}." placeholder:"N"`
	Resume   bool   `default:"true" negatable:"" help:"Continue a cut run of the same query; --no-resume starts again."`
	Retries  int    `default:"10" min:"0" help:"How often a request is retried (429, 503, broken connections), after the time that the server asks for. Default: ${default}." placeholder:"N"`
}

const exportHelp = `
The command writes FILE.part, and its progress to FILE.part.json. FILE appears when it is complete. If the command was cut, run it again: it continues after the last complete page, and the file is the same as that of an uncut run. Records that change while an export runs come as they are when their page is read.
`

// convertHelp is about formats that need all records first.
const convertHelp = `
%s, FILE.part is NDJSON. When it is complete, the command converts it to FILE.part.out, which becomes FILE. So the disk needs room for both. Without --out, the NDJSON is in the folder for temporary files (TMPDIR). If the conversion was cut, run the command again: it does not read the API again.
`

func runExport(s *shell.Session, api shell.APIFlags, f exportFlags, q export.Query, list client.List, what string) error {
	return runExportBy(s, api, api.Client, f, export.Options{Query: q}, list, what)
}

// format returns the format of an export of what, which o describes so far.
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

// runExportBy exports what the client that open returns reads. o has the query and the columns.
func runExportBy(s *shell.Session, api shell.APIFlags, open func(client.Retry, io.Writer) (*client.Client, error), f exportFlags, o export.Options, list client.List, what string) error {
	o.Query.URL, o.Query.List, o.Query.Limit, o.Query.Safe = api.URL, list.String(), f.Limit, f.Safe
	var err error
	if o.Query.Format, err = f.format(s, o, what); err != nil {
		return err
	}
	if o.Query.Format == export.Parquet && s.Environ["GOMEMLIMIT"] == "" { // else the runtime has read it
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	}
	var bar *progress.Bar
	notes := s.Err
	if !s.Quiet {
		bar = progress.Count(s.Err, int64(f.Limit))
		notes = bar
	}
	done := func() {
		if bar != nil {
			bar.Done()
			bar = nil
		}
	}
	defer done()
	reader, err := open(shell.Patient(f.Retries+1), notes)
	if err != nil {
		return err
	}
	o.Fetch = func(ctx context.Context, cursor string, limit int, receive func(client.RawPage) error) error {
		return reader.Raw(ctx, list, cursor, limit, receive)
	}
	o.PageSize, o.Path, o.Stream, o.Restart = f.PageSize, f.Out, s.Out, !f.Resume
	if bar != nil {
		total := 0
		o.Progress = func(records int, bytes int64) {
			total = records
			bar.Set(int64(records), "%d %s, %s", records, what, size(bytes))
		}
		o.Converted = func(records int) { bar.Set(int64(records), "%d of %d %s as %s", records, total, what, o.Query.Format) }
	}
	result, err := export.Run(s.Context, o)
	done()
	if err != nil {
		if result.Records > 0 && f.Out != "" && !errors.Is(err, io.ErrShortWrite) {
			s.Note("%d %s are complete in %s.part. Run the command again to continue.", result.Records, what, f.Out)
		}
		return err
	}
	if o.Columns != nil {
		if o.Columns.Full() {
			s.Note(tooManyKeys, columns.Most)
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
