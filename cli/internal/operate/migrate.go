package operate

import (
	"github.com/lectern-dev/lectern/shared/config"

	"github.com/lectern-dev/lectern/cli/internal/distribute"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// MigrateToCitus is the command lectern migrate-to-citus, which moves a database from one Postgres server to a Citus
// cluster, or back.
type MigrateToCitus struct {
	Step        string   `arg:"" enum:"prepare,distribute,finish,undo" help:"prepare: connect the machines. distribute: copy the tables to the workers and switch over; reads continue, writes wait. finish: free the space of the old tables. undo: move all tables back to one machine."`
	DatabaseURL string   `name:"database-url" env:"LECTERN_ADMIN_DATABASE_URL" required:"" help:"A service's database, by a superuser." placeholder:"URL"`
	Coordinator string   `help:"The address of that server for the workers; for prepare." placeholder:"HOST:PORT"`
	Worker      []string `help:"The address of a worker, with the same user and password; for prepare. Repeatable." placeholder:"HOST:PORT"`
}

// Help returns the text of lectern migrate-to-citus --help: the order of the steps, and examples.
func (MigrateToCitus) Help() string {
	return `Take the steps in this order. You may repeat each step. Reads continue, except while undo moves the tables back. docs/how-to/scale.md describes each step and the checks before the next one.

Examples:

	export LECTERN_ADMIN_DATABASE_URL=postgres://postgres:…@db:5432/entries
	lectern migrate-to-citus prepare --coordinator db:5432 --worker worker-1:5432 --worker worker-2:5432
	lectern migrate-to-citus distribute
	lectern migrate-to-citus finish
	lectern migrate-to-citus undo`
}

// Run does the one step that the argument names: prepare, distribute, finish or undo.
func (m MigrateToCitus) Run(s *shell.Session) error {
	d := &distribute.Database{
		URL: config.NewSecret(m.DatabaseURL), Coordinator: m.Coordinator, Workers: m.Worker,
		Say: func(format string, args ...any) { s.Note(format, args...) },
	}
	switch m.Step {
	case "prepare":
		if m.Coordinator == "" || len(m.Worker) == 0 {
			return shell.Usagef("prepare needs --coordinator HOST:PORT, and --worker HOST:PORT")
		}
		return d.Prepare(s.Context)
	case "distribute":
		done, err := d.Distribute(s.Context)
		if err == nil {
			s.Note("%d tables are distributed now.", len(done))
		}
		return err
	case "undo":
		done, err := d.Undo(s.Context)
		if err == nil {
			s.Note("%d tables are back on one machine.", len(done))
		}
		return err
	}
	return d.Finish(s.Context)
}
