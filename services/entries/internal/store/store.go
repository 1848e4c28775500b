// Package store keeps entries, their events and their progress in Postgres. The package owns the service's SQL and
// schema, and turns rows into the JSON of the API. Requests and answers of HTTP are the task of package api.
package store

import (
	"context"
	"embed"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema returns the service's migrations and the rights of each database role. The reader selects. The ingest role
// also writes, but deletes no records. The remover deletes, and writes tombstones and counters.
func Schema() migrate.Schema {
	return migrate.Schema{
		Name:       "entries",
		Migrations: migrate.Files(migrations),
		Grants: map[migrate.Role][]string{
			migrate.Reader: {"SELECT ON entries, events, progress, removals, project_changes, lost_numbers"},
			migrate.Ingest: {
				"SELECT, INSERT, UPDATE ON entries, events, progress, project_changes", "SELECT ON removals", "SELECT, INSERT, DELETE ON lost_numbers",
			},
			migrate.Remover: {
				"SELECT, DELETE ON entries, events, progress", "SELECT, INSERT, UPDATE, DELETE ON removals, project_changes", "SELECT, INSERT, DELETE ON lost_numbers",
			},
		},
	}
}

// Store reads entries, events, changes and insights from Postgres.
type Store struct {
	pool    pgdb.Querier
	primary pgdb.Querier
}

// New returns a Store. The Store reads from pool, which may be a standby. The Store reads from primary if the result
// must be current, and repeats an insight there if pool fails midway. The roles of both need SELECT.
func New(pool, primary pgdb.Querier) *Store { return &Store{pool: pool, primary: primary} }

// Entry returns one entry as JSON. The error is an EntryNotFound if the project has no such entry.
func (s *Store) Entry(ctx context.Context, projectID, entryID string) ([]byte, error) {
	project := wire.AppendText(nil, []byte(projectID))
	appendRecord := func(dst []byte, row *pgdb.Raw) []byte { return appendEntry(dst, project, row) }
	return lists.One(ctx, s.pool, appendRecord, apierr.NoEntry(entryID), getEntry, projectID, entryID)
}

// Entries opens a page of a project's entries. The error is a QuestionTooLarge if a search in the data of entries takes
// too long for the first part of the page.
func (s *Store) Entries(ctx context.Context, l entry.List, page lists.Page) (*lists.List, error) {
	page.Moves, page.Scans = l.Moves(), scans(l)
	found, err := lists.Open(ctx, entryQuery(s.pool, entryColumns, l), page)
	if searches(l) {
		err = tooLarge(err)
	}
	return found, err
}

// PageViews opens a page of a project's entries with their page views, ordered by update.
func (s *Store) PageViews(ctx context.Context, l entry.List, page lists.Page) (*lists.List, error) {
	page.Moves, page.Scans = l.Moves(), scans(l)
	return lists.Open(ctx, newViewSource(s.pool, l), page)
}

// Events opens a page of an entry's events. The error is an EntryNotFound if the project has no such entry.
func (s *Store) Events(ctx context.Context, projectID, entryID string, descending bool, page lists.Page) (*lists.List, error) {
	return lists.Open(ctx, eventQuery(s.pool, projectID, entryID, descending), page)
}
