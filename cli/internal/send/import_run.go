package send

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"

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

// importFlags are the flags and the arguments of every import, for any resource and format.
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

const importHelp = `
The command sends batches, which the server acknowledges one by one. If the command was cut, run it again: it continues after the last acknowledged batch if the file up to there is the same. Sending a record again is harmless.

A rejected record does not stop the others. The command prints the first ones of each kind, writes all of them to --rejects, and exits with 3. It counts records as new, as changed (they replaced another content, also of the same file), and as unchanged.
`

// runImport sends the files of f to the ingest endpoint, or only checks their records with --dry-run. o describes the
// resource and the format of the files. If records were rejected, the error is [shell.ErrRejected].
func runImport(s *shell.Session, f importFlags, o load.Options) error {
	inputs, total, err := openInputs(s, f.Files)
	if err != nil {
		return err
	}
	o.Inputs, o.State, o.Restart, o.Rejects = inputs, f.State, f.Restart, f.Rejects
	if o.State == "" && total >= 0 {
		o.State = f.Files[0] + ".lectern-import.json"
	}
	report := reporter{quiet: s.Quiet}
	o.Guessed, o.Noted = report.guessed, report.noted
	bar := progress.Bytes(s.Err, s.Quiet || f.DryRun, max(total, 0))
	defer bar.Done()
	report.notes = bar
	o.Progress = func(n int64) { bar.Set(n, "%s", o.Shape.Resource) }
	if f.DryRun {
		report.dry = dryIngest(o.Shape.Resource)
		o.State, o.Send = "", dryBatch(report.dry, s.Out)
	} else {
		if f.IngestAPIKey == "" {
			return shell.Usagef("no ingest key: set LECTERN_INGEST_API_KEY, or give --env-file")
		}
		retry := shell.Patient(f.Retries + 1)
		retry.Notify = shell.Notifier(report.notes)
		ingester, err := client.NewIngester(f.InternalURL, client.WithAPIKey(f.IngestAPIKey),
			client.WithUserAgent("lectern-cli"), client.WithRetry(retry))
		if err != nil {
			return shell.Usage(fmt.Errorf("--internal-url: %w", err))
		}
		o.Target = target(f.InternalURL, o)
		o.Send = func(ctx context.Context, ndjson []byte) (client.Receipt, error) {
			return ingester.Send(ctx, o.Shape.Resource, ndjson)
		}
	}
	o.Rejected = report.rejected
	result, err := load.Run(s.Context, o)
	bar.Done()
	return report.end(s, f, o.Shape.Resource, result, err)
}

// target returns a text that identifies the settings of an import. An import does not continue a state with another
// target.
func target(url string, o load.Options) string {
	b, _ := json.Marshal([]any{url, o.Shape.Resource, o.Format, o.Delimiter, o.Columns, o.Tool.Name, o.SkipRows, o.Encoding}) // strings and lists of them
	return string(b)
}

// openInputs returns the inputs and their total size in bytes. The size is -1 if standard input is among the files.
// openInputs checks that all files exist before any file is sent.
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
		total += info.Size()
		inputs = append(inputs, load.Input{Name: name, Open: func() (io.ReadCloser, error) { return os.Open(name) }, Again: info.Mode().IsRegular()})
	}
	if stdin > 0 {
		total = -1
	}
	return inputs, total, nil
}

// dryIngest returns the ingest of a resource that checks records as the service does, but stores nothing.
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

// dryBatch returns a function that checks a batch with dry, and prints the lines that are not rejected to out. The
// function takes the place of sending.
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

// reporter reports the results of an import to the user: rejects while they occur, and counts at the end.
type reporter struct {
	notes io.Writer
	quiet bool
	dry   *ingest.Dry // of a dry run
	kinds []*rejectKind
	other int      // rejects of further kinds
	cells []string // notes about the cells of files
}

// rejectKind counts rejects with the same code and the same message, apart from values in the message.
type rejectKind struct {
	name, code string
	count      int
	last       string // FILE:LINE
}

// The maximum number of rejects of one kind that are printed, and of kinds that are counted separately.
const (
	mostOfKind = 3
	mostKinds  = 30
)

// given matches the values in the message of a reject, which differ between rejects of one kind.
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

func (r *reporter) noted(file, note string) {
	r.cells = append(r.cells, file+": "+note)
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
	for _, note := range r.cells[:min(len(r.cells), mostKinds)] {
		s.Note("%s", note)
	}
	if n := len(r.cells) - mostKinds; n > 0 {
		s.Note("… and %d more columns like these.", n)
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
