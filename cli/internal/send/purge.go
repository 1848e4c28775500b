package send

import (
	"time"

	"github.com/lectern-dev/lectern/cli/internal/progress"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
)

// Purge is the command lectern purge, which removes entries that were last updated before a given time.
type Purge struct {
	shell.ProjectAdministratorFlags

	Before    shell.Moment  `help:"Remove entries that were last updated before this time: RFC 3339, or a date." placeholder:"TIME"`
	OlderThan time.Duration `help:"Remove entries that were last updated longer ago than this, such as 400d." placeholder:"DURATION"`
	shell.OutputFlags
	DryRun bool `help:"Count them, and remove nothing."`
}

// Help returns the text of lectern purge --help: which records are removed, and examples.
func (Purge) Help() string {
	return `The command removes entries with their events, and older events whose entry never came. Followers of the change feed see the removals. A purged entry comes back if its source sends it again.

The command prints how many records it removed. If it was cut, run it again. See also the retention setting of the chart, which does this every day.

Examples:

	lectern purge --older-than 400d --dry-run --env-file .lectern/demo.env
	lectern purge --before 2025-01-01 --project pr_1`
}

// Run removes the entries and prints the number of removed records. With --dry-run, Run only counts the records that a
// purge would remove.
func (p *Purge) Run(s *shell.Session) error {
	before := p.Before.Time
	switch {
	case p.Before.IsZero() == (p.OlderThan == 0):
		return shell.Usagef("purge takes one of --before TIME and --older-than DURATION, and was given %s", map[bool]string{true: "none", false: "both"}[p.OlderThan == 0])
	case p.OlderThan != 0:
		before = s.Now().Add(-p.OlderThan)
	}
	admin, err := p.Administrator(s)
	if err != nil {
		return err
	}
	var found client.Removed
	for more := true; more; {
		some, err := admin.PurgeFrom(s.Context, p.Project, before, true, found.Cursor)
		if err != nil {
			return shell.AdviseAdministrator(err)
		}
		found = client.Removed{Entries: found.Entries + some.Entries, Events: found.Events + some.Events, Cursor: some.Cursor}
		more = some.Cursor != ""
	}
	s.Note("Entries of %s that were last updated before %s:", p.Project, before.UTC().Format(time.RFC3339))
	if p.DryRun {
		return p.PrintValue(s, found)
	}
	var removed client.Removed
	bar := progress.Count(s.Err, s.Quiet, int64(found.Entries))
	defer bar.Done()
	cursor := ""
	for more := true; more; {
		some, err := admin.PurgeFrom(s.Context, p.Project, before, false, cursor)
		removed.Entries += some.Entries
		removed.Events += some.Events
		if err != nil {
			bar.Done()
			s.Note("%d entries and %d events are removed. Run the command again to continue.", removed.Entries, removed.Events)
			return shell.AdviseAdministrator(err)
		}
		bar.Set(int64(removed.Entries), "%d entries with %d events", removed.Entries, removed.Events)
		more, cursor = some.Unfinished(), some.Cursor
	}
	bar.Done()
	return p.PrintValue(s, removed)
}
