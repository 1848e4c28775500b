package operate

import (
	"time"

	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// Restored is the command lectern restored, which says that the database of the entries service was restored.
type Restored struct {
	shell.AdministratorFlags

	To shell.Moment `help:"The time to which the database was restored: RFC 3339, or a date. Changes that came after it count as lost, too." placeholder:"TIME"`
}

// Help returns the text of lectern restored --help: when the command is needed, and examples.
func (Restored) Help() string {
	return `Followers of the change feed must notice that changes are lost. The entries service sees most restores by itself: a dump into any database, point-in-time recovery, a failover. Run this command after the others: a snapshot of a disk, data loaded into the standing tables, a crash that lost commits, a worker of Citus, or a server that hides its identity, such as Aurora and Neon.

Run it before senders write again. If they have written, give --to: the readers of all changes after that time then read again. See docs/how-to/restore.md.

Examples:

	lectern restored --env-file .lectern/demo.env
	lectern restored --to 2025-01-31T04:00:00Z`
}

// Run records the restore for all projects, and prints their number.
func (c *Restored) Run(s *shell.Session) error {
	admin, err := c.Administrator(s)
	if err != nil {
		return err
	}
	projects, err := admin.Restored(s.Context, c.To.Time)
	if err != nil {
		return shell.AdviseAdministrator(err)
	}
	if c.To.IsZero() {
		s.Note("Changes after the newest one of each of %d projects are lost.", projects)
	} else {
		s.Note("Changes of %d projects after %s are lost.", projects, c.To.UTC().Format(time.RFC3339))
	}
	return nil
}
