package command

import (
	"github.com/lectern-dev/lectern/shared/config"

	"github.com/lectern-dev/lectern/cli/internal/distribute"
)

// migrateCommand takes a database from one Postgres to a Citus cluster, or back.
type migrateCommand struct {
	Step        string   `arg:"" enum:"prepare,distribute,finish,undo" help:"prepare: make the machines known to each other. distribute: copy the tables out and switch over; reads go on, writes wait. finish: give back the room that they took. undo: bring all back to one machine."`
	DatabaseURL string   `name:"database-url" env:"LECTERN_ADMIN_DATABASE_URL" required:"" help:"A service's database, by a superuser." placeholder:"URL"`
	Coordinator string   `help:"Where the workers reach that server; for prepare." placeholder:"HOST:PORT"`
	Worker      []string `help:"Where a worker is reached, with the same user and password; for prepare. Once for each." placeholder:"HOST:PORT"`
}

// Help returns the text of --help in addition to the options.
func (migrateCommand) Help() string {
	return `The steps are taken in this order; each may be repeated, and undo goes back from any but the last. Reads go on throughout; docs/how-to/scale.md says what each step does, and what to check before the next.

Examples:

	export LECTERN_ADMIN_DATABASE_URL=postgres://postgres:…@db:5432/entries
	lectern migrate-to-citus prepare --coordinator db:5432 --worker worker-1:5432 --worker worker-2:5432
	lectern migrate-to-citus distribute
	lectern migrate-to-citus finish
	lectern migrate-to-citus undo`
}

// Run does one step.
func (m migrateCommand) Run(s *Session, c *commands) error {
	d := &distribute.Database{
		URL: config.NewSecret(m.DatabaseURL), Coordinator: m.Coordinator, Workers: m.Worker,
		Say: func(format string, args ...any) { c.note(s, format, args...) },
	}
	switch m.Step {
	case "prepare":
		if m.Coordinator == "" || len(m.Worker) == 0 {
			return usagef("prepare needs --coordinator and --worker")
		}
		return d.Prepare(s.Context)
	case "distribute":
		done, err := d.Distribute(s.Context)
		if err == nil {
			c.note(s, "%d tables are distributed now.", len(done))
		}
		return err
	case "undo":
		done, err := d.Undo(s.Context)
		if err == nil {
			c.note(s, "%d tables are back on one machine.", len(done))
		}
		return err
	}
	return d.Finish(s.Context)
}
