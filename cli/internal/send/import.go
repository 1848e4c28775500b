// Package send has the commands that send records in, and those that remove them.
package send

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lectern-dev/lectern/cli/internal/csvrow"
	"github.com/lectern-dev/lectern/cli/internal/load"
	"github.com/lectern-dev/lectern/cli/internal/progress"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	embeddables "github.com/lectern-dev/lectern/services/embeddables/app"
	entries "github.com/lectern-dev/lectern/services/entries/app"
	experiments "github.com/lectern-dev/lectern/services/experiments/app"
	region "github.com/lectern-dev/lectern/services/region/app"
	"github.com/lectern-dev/lectern/shared/ingest"
)

// Import is lectern import: the commands that send files of records.
type Import struct {
	Entries            importEntries            `cmd:"" help:"Send entries in."`
	Events             importEvents             `cmd:"" help:"Send events in."`
	Embeddables        importEmbeddables        `cmd:"" help:"Send embeddables in."`
	EmbeddableVersions importEmbeddableVersions `cmd:"" help:"Send versions of embeddables in."`
	Experiments        importExperiments        `cmd:"" help:"Send experiments in."`
	Projects           importProjects           `cmd:"" help:"Send titles and regions of projects in."`
}

// importFlags are those of every import.
type importFlags struct {
	InternalURL  string `type:"url" env:"LECTERN_INTERNAL_URL" default:"http://127.0.0.1:9090" help:"The internal address: records go to URL/internal/RESOURCE. Default: ${default}." placeholder:"URL"`
	IngestAPIKey string `env:"LECTERN_INGEST_API_KEY" help:"An ingest key. Other users of this machine can see flags: prefer the variable." placeholder:"KEY"`

	Rejects string `type:"path" help:"Write rejected records to FILE: one JSON object a line with file, line, code, message and the record." placeholder:"FILE"`
	State   string `type:"path" help:"The file for the progress while the import runs. Default: next to the first file; none for standard input." placeholder:"FILE"`
	Restart bool   `help:"Start again, whatever the progress of an earlier run."`
	Retries int    `default:"10" min:"0" help:"How often a batch is retried (429, 503, broken connections), after the time that the server asks for. Default: ${default}." placeholder:"N"`
	DryRun  bool   `help:"Check the records as the server does, print those that it would take, and send nothing."`

	Files []string `arg:"" help:"Files to send; - is standard input."`
}

// tableFlags are those of imports that take CSV too. NDJSON refuses flags with the tag csv.
type tableFlags struct {
	Project   string   `short:"p" env:"LECTERN_PROJECT_ID" help:"The project of CSV rows that name none. NDJSON records name theirs." placeholder:"ID"`
	Format    string   `enum:"auto,ndjson,csv" default:"auto" help:"ndjson, csv, or auto: NDJSON when the file begins with a brace." placeholder:"FORMAT"`
	Delimiter string   `csv:"" default:"auto" help:"The separator of CSV cells: one character, tab, or auto: the one of , ; tab and | that fits the first rows." placeholder:"CHAR"`
	Set       []string `csv:"" sep:"none" help:"Give a field of CSV rows: text, in which {COLUMN} stands for a cell, {#1} for that of the first column, and {#row} for the number of the row." placeholder:"FIELD=VALUE"`
	Skip      []string `csv:"" sep:"none" help:"Omit all columns with this header, or #N." placeholder:"COLUMN"`

	SkipRows   int    `csv:"" default:"0" min:"0" help:"Rows of CSV before the header. Default: ${default}." placeholder:"N"`
	Encoding   string `csv:"" help:"The encoding of CSV, such as windows-1252. Default: UTF-8, or UTF-16 with its mark." placeholder:"NAME"`
	TimeFormat string `csv:"" help:"How CSV columns write times: iso, text, dmy, mdy, mail, unix, unix-ms, excel, or a pattern such as '%d %b %Y %H:%M'." placeholder:"FORMAT"`
	TimeZone   string `csv:"" help:"The zone of times in CSV columns that name none, such as Europe/Berlin. Default: UTC." placeholder:"ZONE"`
}

const importHelp = `
The command sends batches, which the server acknowledges one by one. If the command was cut, run it again: it continues after the last acknowledged batch if the file up to there is the same. Sending a record again is harmless.

A rejected record does not stop the others. The command prints the first ones of each kind, writes all of them to --rejects, and exits with 3. It counts records as new, as changed (they replaced another content, also of the same file), and as unchanged.
`

type importEntries struct {
	importFlags
	tableFlags
	Keep []string `csv:"" sep:"none" help:"Keep a column in entry_data although --set uses it." placeholder:"COLUMN"`
	Text []string `csv:"" sep:"none" help:"Keep a column's cells as text, even numbers." placeholder:"COLUMN"`
	As   string   `csv:"" enum:",typeform,google-forms,surveymonkey,qualtrics,jotform" default:"" help:"CSV as a tool exports it: typeform, google-forms, surveymonkey, qualtrics or jotform. It gives entry_id, contact_id and the times, unless --set does." placeholder:"TOOL"`
}

// Help describes how columns become fields, with examples.
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
	  --set entry_id='row-{#row}' --set created_at='{date} {time}' … | head -3
	lectern import entries --as typeform responses.csv --project pr_shop \\
	  --set group_id=grp_survey --set embeddable_id=emb_survey
	zcat entries.ndjson.gz | lectern import entries -`
}

// Run imports.
func (i *importEntries) Run(s *shell.Session, k *kong.Context) error {
	return runTableImport(s, k, i.importFlags, i.tableFlags, i.As, csvrow.Entries(), csvrow.Options{Keep: i.Keep, Text: i.Text})
}

type importEvents struct {
	importFlags
	tableFlags
}

// Help describes how columns become fields, with examples.
func (importEvents) Help() string {
	return `NDJSON has one event a line, as the API returns it, and may add event_id and url. CSV has a header with the names of an event's fields. --set sets the others, from columns or constants. An empty cell is null. Omit columns that are not fields with --skip.
` + importHelp + `
Examples:

	lectern import events --env-file .lectern/demo.env events.ndjson
	lectern import events views.csv --set event_type=flowpage.viewed --set view_type=flowpage`
}

// Run imports.
func (i *importEvents) Run(s *shell.Session, k *kong.Context) error {
	return runTableImport(s, k, i.importFlags, i.tableFlags, "", csvrow.Events(), csvrow.Options{})
}

// runTableImport imports NDJSON or CSV.
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

// runImport sends the files, which o describes.
func runImport(s *shell.Session, f importFlags, o load.Options) error {
	inputs, total, err := openInputs(s, f.Files)
	if err != nil {
		return err
	}
	o.Inputs, o.State, o.Restart, o.Rejects = inputs, f.State, f.Restart, f.Rejects
	if o.State == "" && total >= 0 {
		o.State = f.Files[0] + ".lectern-import.json"
	}
	report := reporter{notes: s.Err, quiet: s.Quiet}
	o.Guessed = report.guessed
	done := func() {}
	if f.DryRun {
		report.dry = dryIngest(o.Shape.Resource)
		o.State, o.Send = "", dryBatch(report.dry, s.Out)
	} else {
		if f.IngestAPIKey == "" {
			return shell.Usagef("no ingest key: set LECTERN_INGEST_API_KEY, or give --env-file")
		}
		if !s.Quiet {
			bar := progress.Bytes(s.Err, max(total, 0))
			done = bar.Done
			report.notes = bar
			o.Progress = func(n int64) { bar.Set(n, "%s", o.Shape.Resource) }
		}
		retry := shell.Patient(f.Retries + 1)
		retry.Notify = shell.Notifier(report.notes)
		ingester, err := client.NewIngester(f.InternalURL, client.WithAPIKey(f.IngestAPIKey),
			client.WithUserAgent("lectern-cli"), client.WithRetry(retry))
		if err != nil {
			done()
			return shell.Usage(fmt.Errorf("--internal-url: %w", err))
		}
		o.Target = target(f.InternalURL, o)
		o.Send = func(ctx context.Context, ndjson []byte) (client.Receipt, error) {
			return ingester.Send(ctx, o.Shape.Resource, ndjson)
		}
	}
	o.Rejected = report.rejected
	result, err := load.Run(s.Context, o)
	done()
	return report.end(s, f, o.Shape.Resource, result, err)
}

// target has the settings that an import's state depends on.
func target(url string, o load.Options) string {
	b, _ := json.Marshal([]any{url, o.Shape.Resource, o.Format, o.Delimiter, o.Columns, o.Tool.Name, o.SkipRows, o.Encoding}) // strings and lists of them
	return string(b)
}

// parseDelimiter returns 0 for auto.
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

// openInputs checks that all files exist before any is sent. The total size is -1 if standard input is among them.
func openInputs(s *shell.Session, files []string) ([]load.Input, int64, error) {
	var inputs []load.Input
	total, stdin := int64(0), 0
	for _, name := range files {
		if name == "-" {
			if stdin++; stdin > 1 {
				return nil, 0, shell.Usagef("standard input (-) can be read once")
			}
			inputs = append(inputs, load.Input{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(s.In), nil }})
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, 0, err
		}
		if info.IsDir() {
			return nil, 0, shell.Usagef("%s is a folder: name its files", name)
		}
		if strings.EqualFold(filepath.Ext(name), ".gz") {
			return nil, 0, shell.Usagef("%s is compressed: zcat %s | lectern import … -", name, name)
		}
		total += info.Size()
		inputs = append(inputs, load.Input{Name: name, Open: func() (io.ReadCloser, error) { return os.Open(name) }, Again: info.Mode().IsRegular()})
	}
	if stdin > 0 {
		total = -1
	}
	return inputs, total, nil
}

// dryIngest returns the ingest of a resource by its service, without a store.
func dryIngest(resource string) *ingest.Dry {
	switch resource {
	case "entries", "events":
		return entries.NewDry(resource)
	case "experiments":
		return experiments.NewDry()
	case "projects":
		return region.NewDry()
	}
	return embeddables.NewDry(resource)
}

// dryBatch checks batches and prints the lines that are not rejected.
func dryBatch(dry *ingest.Dry, out io.Writer) func(context.Context, []byte) (client.Receipt, error) {
	return func(ctx context.Context, ndjson []byte) (client.Receipt, error) {
		summary, err := dry.Take(ctx, ndjson)
		if err != nil {
			return client.Receipt{}, err
		}
		receipt := client.Receipt{Stored: int(summary.Stored), Changed: int(summary.Changed), Existing: int(summary.Existing), Rejected: int(summary.Rejected)}
		bad := map[int]bool{}
		for _, r := range summary.Rejects {
			bad[int(r.Line)] = true
			receipt.Rejects = append(receipt.Rejects, client.Reject{Line: int(r.Line), Code: string(r.Code), Message: r.Message})
		}
		number := 0
		for line := range bytes.Lines(ndjson) {
			if number++; bad[number] {
				continue
			}
			if _, err := out.Write(line); err != nil {
				return client.Receipt{}, err
			}
		}
		return receipt, nil
	}
}

// reporter reports the outcome of the records.
type reporter struct {
	notes io.Writer
	quiet bool
	dry   *ingest.Dry // of a dry run
	kinds []*rejectKind
	other int // rejects of further kinds
}

// rejectKind counts rejects with the same code and message, apart from the values in it.
type rejectKind struct {
	name, code string
	count      int
	last       string // FILE:LINE
}

// How many rejects of a kind, and how many kinds, are listed on standard error.
const (
	mostOfKind = 3
	mostKinds  = 30
)

// given matches what differs between rejects of a kind.
var given = regexp.MustCompile(` was given as .*|(: | is )"(\\.|[^"\\])*"|[0-9]+`)

func (r *reporter) rejected(file string, line int, code, message string) {
	name := code + ": " + given.ReplaceAllString(message, "")
	i := slices.IndexFunc(r.kinds, func(k *rejectKind) bool { return k.name == name })
	switch {
	case i < 0 && len(r.kinds) == mostKinds:
		r.other++
		return
	case i < 0:
		i, r.kinds = len(r.kinds), append(r.kinds, &rejectKind{name: name, code: code})
	}
	kind := r.kinds[i]
	kind.count++
	kind.last = fmt.Sprintf("%s:%d", file, line)
	if !r.quiet && kind.count <= mostOfKind {
		fmt.Fprintf(r.notes, "%s: %s: %s\n", kind.last, code, message)
	}
}

func (r *reporter) guessed(file string, delimiter byte) {
	if !r.quiet {
		fmt.Fprintf(r.notes, "%s: cells are separated by %q; --delimiter says otherwise.\n", file, string(delimiter))
	}
}

func (r *reporter) end(s *shell.Session, f importFlags, resource string, result load.Result, err error) error {
	if errors.Is(err, load.ErrCSVFlags) {
		return shell.Usage(err)
	}
	if err != nil {
		if result.Stored+result.Existing > 0 && (f.State != "" || f.Files[0] != "-") && !f.DryRun {
			s.Note("%d %s are acknowledged. Run the command again to continue.", result.Stored+result.Existing, resource)
		}
		return err
	}
	for _, kind := range r.kinds {
		if kind.count > mostOfKind {
			s.Note("… %s: %d more like these, the last at %s.", kind.code, kind.count-mostOfKind, kind.last)
		}
	}
	if r.other > 0 {
		s.Note("… and %d of other kinds; --rejects FILE takes them all.", r.other)
	}
	counts := fmt.Sprintf("%d new, %d changed, %d unchanged, %d rejected", result.Stored-result.Changed, result.Changed, result.Existing, result.Rejected)
	switch {
	case f.DryRun:
		s.Note("Nothing was sent. In an empty project: %s.", counts)
		if n := r.dry.Forgotten; n > 0 {
			s.Note("%d more ids than the %d that a dry run remembers: their repetitions count as new.", n, ingest.MostRemembered)
		}
	case result.Resumed:
		s.Note("Imported %s: %s, with the earlier run that this one continued.", resource, counts)
	default:
		s.Note("Imported %s: %s.", resource, counts)
	}
	if result.Rejected > 0 {
		if f.Rejects != "" {
			s.Note("The rejected ones are in %s.", f.Rejects)
		}
		return shell.ErrRejected
	}
	return nil
}
