// Package store keeps experiments and the changes of their status in Postgres. It owns the service's
// SQL and its schema; it knows nothing of HTTP. Rows go from Postgres' wire into the bytes of the
// answer: no struct is made of a row.
package store

import (
	"context"
	"embed"
	"io/fs"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/pagelist"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pgmigrate"
	"github.com/lectern-dev/lectern/shared/pgrecord"

	"github.com/lectern-dev/lectern/services/experiments/internal/experiment"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the service's database: its migrations, and what each role may do. The reader selects. The
// ingest role also writes, and deletes nothing.
func Schema() pgmigrate.Schema {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return pgmigrate.Schema{
		Name:       "experiments",
		Migrations: sub,
		Grants: map[pgmigrate.Role][]string{
			pgmigrate.Reader: {"SELECT ON experiments, status_changes"},
			pgmigrate.Ingest: {"SELECT, INSERT, UPDATE ON experiments", "SELECT, INSERT ON status_changes"},
		},
	}
}

// Store reads with one pool.
type Store struct {
	pool pgdb.Querier
}

// New returns a Store that reads from pool, whose role needs SELECT.
func New(pool pgdb.Querier) *Store { return &Store{pool: pool} }

// Experiment returns one experiment as JSON. One that the project does not have is an
// ExperimentNotFound.
func (s *Store) Experiment(ctx context.Context, projectID, experimentID string) ([]byte, error) {
	return pgrecord.One(ctx, s.pool, experimentRow{}.Append, apierr.NoExperiment(experimentID), getExperiment, projectID, experimentID)
}

// Experiments opens a page of a project's experiments. A project that is not known has none.
func (s *Store) Experiments(ctx context.Context, l experiment.List, page pagelist.Page) (*pagelist.List, error) {
	page.Moves = true // the source may say another created_at
	return pagelist.Open(ctx, newExperimentList(s.pool, l), page)
}

// StatusChanges opens a page of the changes of an experiment's status. An experiment that the project
// does not have is an ExperimentNotFound. The page takes all.
func (s *Store) StatusChanges(ctx context.Context, projectID, experimentID string, page pagelist.Page) (*pagelist.List, error) {
	return pagelist.Open(ctx, newChangeList(s.pool, projectID, experimentID), page)
}

func newExperimentList(pool pgdb.Querier, l experiment.List) *pgrecord.List {
	sql := pgrecord.Statements{Chunk: experiments, Nth: nthExperiment, Last: lastExperiment}
	var filters []any
	if l.Status != "" {
		sql = pgrecord.Statements{Chunk: experimentsOfStatus, Nth: nthExperimentOfStatus, Last: lastExperimentOfStatus}
		filters = []any{l.Status}
	}
	return &pgrecord.List{
		Pool: pgdb.Pinned(pool),
		SQL:  sql,
		Arguments: func(after, end pagelist.Position, own ...any) []any {
			args := make([]any, 0, 7)
			args = append(args, l.ProjectID, pgdb.Timestamp(after.Key), after.ID, pgdb.Timestamp(end.Key), end.ID)
			args = append(args, own...)
			return append(args, filters...)
		},
		Row: experimentRow{},
		Position: func(raw *pgdb.Raw) pagelist.Position {
			return pagelist.Position{Key: raw.Micros(0), ID: string(raw.Text(1))}
		},
	}
}

// experimentRow is a row that holds an experiment.
type experimentRow struct{}

func (experimentRow) Place(raw *pgdb.Raw) (key int64, id []byte, ok bool) {
	return raw.Micros(experiment.ColumnCreatedAt), raw.Text(experiment.ColumnID), true
}

func (experimentRow) Append(dst []byte, raw *pgdb.Raw) []byte { return experiment.Append(dst, raw) }

// newChangeList reads all changes of an experiment's status. Every experiment has one, which is stored
// with it: without any there is no experiment.
func newChangeList(pool pgdb.Querier, projectID, experimentID string) *pgrecord.List {
	return &pgrecord.List{
		Pool: pgdb.Pinned(pool),
		SQL:  pgrecord.Statements{First: statusChanges, Chunk: statusChanges, Last: lastStatusChange},
		Arguments: func(after, end pagelist.Position, own ...any) []any {
			return append([]any{projectID, experimentID, after.Key, end.Key}, own...)
		},
		Row:      changeRow{},
		Position: func(raw *pgdb.Raw) pagelist.Position { return pagelist.Position{Key: raw.Int(0)} },
		Missing:  apierr.NoExperiment(experimentID),
	}
}

// changeRow is a row that holds a change of status.
type changeRow struct{}

func (changeRow) Place(raw *pgdb.Raw) (key int64, id []byte, ok bool) {
	return raw.Int(experiment.ColumnChange), nil, true
}

func (changeRow) Append(dst []byte, raw *pgdb.Raw) []byte { return experiment.AppendChange(dst, raw) }
