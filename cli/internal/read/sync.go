package read

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/destination"
	"github.com/lectern-dev/lectern/cli/internal/progress"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/push"
)

// Sync is the command lectern sync, which keeps a copy of a project or sends its changes to a receiver of webhooks.
type Sync struct {
	shell.APIFlags
	To         string `required:"" env:"LECTERN_SYNC_TO" help:"The copy, or the receiver of webhooks. Other users of this machine can see flags: put a password into the variable." placeholder:"${destinations}"`
	Schema     string `default:"lectern" help:"The Postgres schema of the copy or of --state, which has nothing else; created if missing. Default: ${default}." placeholder:"NAME"`
	Columns    string `default:"auto" help:"Which keys of entry_data become columns: auto (all), none, or a FILE that lists them as JSON. Default: ${default}." placeholder:"auto|none|FILE"`
	Follow     bool   `help:"Stay connected and copy each change as it comes. Default: end when the copy is current."`
	SoftDelete bool   `help:"Postgres only: mark removed rows with removed_at and removal_reason, and keep them with their data. Default: delete them."`
	Verify     bool   `help:"Copy nothing, but compare the copy with the source and print each difference as a line of JSON. The exit code is 1 if there is one."`
	Repair     bool   `help:"With --verify: also mend the copy. No other sync may write to it meanwhile."`
	Moved      bool   `help:"Continue a copy that was made from another --url of the same deployment."`
	PageSize   int    `default:"5000" help:"Changes a request. Default: ${default}." placeholder:"N"`
	Retries    int    `default:"10" min:"0" help:"How often in a row the API or the destination may fail. Default: ${default}." placeholder:"N"`
	maskFlags
	Resume bool `help:"Receivers only: send again, although the receiver answered 410 before."`
	destination.ReceiverFlags
	metricsFlag
}

// Help returns the text of lectern sync --help: the form of a copy, the destinations, and examples.
func (Sync) Help() string {
	return `The command copies a project into the tables of a Postgres schema, or into Parquet files of a folder or a bucket: entries, events, embeddables with their versions, and experiments. It commits each batch together with the position after it, so the copy is exact whatever is killed: run the command again. It removes entries that are removed at the source. Parquet files keep each state of an entry, but no rows of erased ones.

The top-level keys of entry_data become columns: in Postgres of a view for each embeddable (entries_of_ID), in Parquet of the files of the embeddable. A column has the type of its first value: text, double, boolean or timestamp. It is null where a value does not fit; entry_data has all values. A file for --columns lists keys, with optional names and types (also integer and date):

	[{"key": "email"}, {"key": "age", "name": "age_in_years", "type": "double"}]

Examples:

	lectern sync --env-file .lectern/demo.env --to postgres://me@127.0.0.1/warehouse
	lectern sync --follow --schema shop --to postgres://me@127.0.0.1/warehouse
	lectern sync --to file:///data/shop
	lectern sync --to s3://lake/shop
	lectern sync --verify --to s3://lake/shop
	lectern sync --follow --state shop.json --secret-file shop.secret --to https://shop.example.com/hook

For a bucket, set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION, or AWS_PROFILE, or use the machine's role. AWS_ENDPOINT_URL names another server than Amazon's. LECTERN_S3_SSE asks for encryption: AES256, aws:kms or aws:kms:KEY.

A receiver gets the changes by HTTP POST, signed as Standard Webhooks say, with the secret in LECTERN_SYNC_SECRET or --secret-file: whsec_ and the base64 of 24 to 64 bytes; two during a rotation. One request is in flight. Every answer but 2xx is a failure, and the command tries again for ever. 410 stops it until --resume is given. A request may come again: a receiver drops changes whose seq is not greater than the last that it stored.`
}

// collectAt is the growth of the heap between two garbage collections, in percent of the memory in use. The large
// value saves processor time, and [memoryLimit] bounds the heap.
const collectAt = 400

// Run copies all changes that the destination does not have yet, and continues with new changes if --follow is set.
// With --verify, Run compares the copy with its source instead.
func (f *Sync) Run(s *shell.Session) error {
	if s.Environ["GOMEMLIMIT"] == "" { // else the runtime has read it
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
		defer debug.SetGCPercent(debug.SetGCPercent(collectAt))
	}
	if f.Verify && f.Follow || f.Repair && !f.Verify {
		return shell.Usagef("allowed are --follow, --verify, and --verify --repair")
	}
	var report *syncReport
	mask, err := f.mask(s.Environ)
	if err != nil {
		return err
	}
	to, err := f.destination(s, mask, func(text string) { report.note(text) })
	if err != nil {
		return err
	}
	report = newSyncReport(s, f.Follow)
	defer report.Done()
	metrics, err := f.serve(s, report)
	if err != nil {
		return err
	}
	defer metrics.close()
	retry := shell.Patient(f.Retries + 1)
	retry.Notify = metrics.apiFailed
	reader, err := f.Client(retry, report)
	if err != nil {
		return err
	}
	attempts := f.Retries + 1
	if to.Traits().Endless {
		attempts = client.Forever
	}
	o := copies.Options{
		Client: reader, Source: f.source(), Destination: to, Mask: mask, Query: f.Query(), Follow: f.Follow, PageSize: f.PageSize, Attempts: attempts,
		Progress: func(p copies.Progress) { report.show(p); metrics.show(p) },
		Notify: func(err error, wait time.Duration) {
			shell.Notifier(report)(err, wait)
			metrics.destinationFailed()
		},
		Note: report.note,
	}
	if f.Verify {
		return verify(s, o, to, f.Repair)
	}
	result, err := copies.Run(s.Context, o)
	report.Done()
	for _, remark := range to.Remarks() {
		s.Note("%s", remark)
	}
	if errors.Is(err, push.ErrStopped) && f.Follow && f.MetricsAddress != "" {
		// A restart would change nothing, so the process stays, for its metrics.
		metrics.refused()
		fmt.Fprintf(s.Err, "lectern: %s\n", shell.OneLine(err))
		<-s.Context.Done()
		return context.Cause(s.Context)
	}
	if err != nil {
		if result.Changes > 0 {
			s.Note("%s copied to the %s. Run the command again to continue.", counted(result.Changes, "change was", "changes were"), to)
		}
		return err
	}
	s.Note("Copied %s (%s). The %s is current.", counted(result.Changes, "change", "changes"), size(result.Bytes), to)
	return nil
}

func (f *Sync) source() copies.Source {
	return copies.Source{URL: f.URL, ProjectID: f.Project}
}

// choice returns which keys of entry_data become columns, by --columns.
func (f *Sync) choice() (columns.Choice, error) {
	switch f.Columns {
	case "auto":
		return columns.Choice{All: true}, nil
	case "none":
		return columns.Choice{}, nil
	}
	return readColumns(f.Columns, "auto, none or a file")
}

// destination opens the destination of --to. The destination calls note with texts for the user.
func (f *Sync) destination(s *shell.Session, mask *copies.Mask, note func(text string)) (destination.Destination, error) {
	choice, err := f.choice()
	if err != nil {
		return nil, err
	}
	return destination.Open(destination.Options{
		Flag: "--to", URL: f.To, Schema: f.Schema, Source: f.source(), Moved: f.Moved, Columns: choice, Mask: mask, SoftDelete: f.SoftDelete,
		Verify: f.Verify, Repair: f.Repair, Resume: f.Resume, Note: note, Environ: s.Environ, Receiver: f.ReceiverFlags,
	})
}

// syncReport shows the progress of a sync: a bar on a terminal, and otherwise a line a minute. A quiet command shows
// nothing.
type syncReport struct {
	*progress.Bar
	quiet bool
	now   func() time.Time
	next  time.Time // of the next line; zero: there are none
}

// newSyncReport starts a report. A sync without an end has a bar without a percentage.
func newSyncReport(s *shell.Session, endless bool) *syncReport {
	var total int64 = 100
	if endless {
		total = 0
	}
	r := &syncReport{Bar: progress.Count(s.Err, s.Quiet, total), quiet: s.Quiet, now: s.Now}
	if !s.Quiet && !progress.Shown(s.Err) {
		r.next = s.Now().Add(shell.NoteEvery)
	}
	return r
}

// note prints text as a line above the bar, unless the command is quiet.
func (r *syncReport) note(text string) {
	if !r.quiet {
		fmt.Fprintln(r, text)
	}
}

func (r *syncReport) show(p copies.Progress) {
	standing := "current"
	if !p.Current {
		standing = fmt.Sprintf("about %d%% of the way", p.Percent())
	}
	text := fmt.Sprintf("%s, %s, %s", counted(p.Changes, "change", "changes"), size(p.Bytes), standing)
	r.Set(p.Percent(), "%s", text)
	if now := r.now(); !r.next.IsZero() && !now.Before(r.next) {
		fmt.Fprintf(r, "%s copied %s\n", now.UTC().Format(time.RFC3339), text)
		r.next = now.Add(shell.NoteEvery)
	}
}
