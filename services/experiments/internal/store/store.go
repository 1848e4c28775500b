// Package store keeps experiments and the changes of their status in Postgres. The package owns the service's SQL and
// schema, and turns rows into the JSON of the API. Requests and answers of HTTP are the task of package api.
package store

import (
	"context"
	"embed"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/changed"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/experiments/internal/experiment"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema returns the service's migrations and the rights of each database role. The reader selects. The ingest role
// also writes, but deletes nothing. The remover selects and deletes.
func Schema() migrate.Schema {
	return migrate.Schema{
		Name:       "experiments",
		Migrations: migrate.Files(migrations),
		Grants: map[migrate.Role][]string{
			migrate.Reader:  {"SELECT ON experiments, status_changes, experiment_changes"},
			migrate.Ingest:  {"SELECT, INSERT, UPDATE ON experiments, experiment_changes", "SELECT, INSERT ON status_changes"},
			migrate.Remover: {"SELECT, DELETE ON experiments, status_changes, experiment_changes"},
		},
	}
}

// numbers has the numbers of all stored changes of experiments.
var numbers = changed.In("experiment_changes")

// Store reads experiments and the changes of their status from Postgres.
type Store struct {
	pool    pgdb.Querier
	primary pgdb.Querier
}

// New returns a Store that reads from pool, and from primary what has changed. The role of both needs SELECT.
func New(pool, primary pgdb.Querier) *Store { return &Store{pool: pool, primary: primary} }

// View returns a view of a project, for a reader that asks for the records changed after a number or for [changed.All].
// The error is a HistoryLost if the project does not know the number.
func (s *Store) View(ctx context.Context, projectID string, after int64) (changed.View, error) {
	return numbers.View(ctx, s.pool, s.primary, projectID, after)
}

// Experiment returns one experiment as JSON. The error is an ExperimentNotFound if the project has no such experiment.
func (s *Store) Experiment(ctx context.Context, projectID, experimentID string) ([]byte, error) {
	return lists.One(ctx, s.pool, appendExperiment, apierr.NoExperiment(experimentID), getExperiment, projectID, experimentID)
}

// Experiments opens a page of a project's experiments in a view. The page of an unknown project is empty.
func (s *Store) Experiments(ctx context.Context, v changed.View, l experiment.List, page lists.Page) (*lists.List, error) {
	page.Moves = true // the source can change created_at
	page.Scans = v.After != changed.All
	return lists.Open(ctx, experimentQuery(v, l), page)
}

// StatusChanges opens a page of all changes of an experiment's status, at least as new as the change after, unless after
// is [changed.All]. The error is an ExperimentNotFound if the project has no such experiment.
func (s *Store) StatusChanges(ctx context.Context, projectID, experimentID string, after int64, page lists.Page) (*lists.List, error) {
	pool, err := numbers.Reader(ctx, s.pool, s.primary, projectID, after)
	if err != nil {
		return nil, err
	}
	return lists.Open(ctx, changeQuery(pool, projectID, experimentID), page)
}
