// Package store keeps entries and events in Postgres. It owns the service's SQL and schema. It turns rows into the
// JSON of the API without a struct for each row. It knows nothing of HTTP.
package store

import (
	"context"
	"embed"
	"io/fs"

	"github.com/lectern-dev/lectern/shared/http/apierr"
	"github.com/lectern-dev/lectern/shared/http/pagelist"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema returns the service's migrations and the rights of each role. The reader selects. The ingest role also
// writes, but deletes nothing. The remover deletes, and writes tombstones.
func Schema() migrate.Schema {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return migrate.Schema{
		Name:       "entries",
		Migrations: sub,
		Grants: map[migrate.Role][]string{
			migrate.Reader: {"SELECT ON entries, events, progress, removals, project_changes"},
			migrate.Ingest: {"SELECT, INSERT, UPDATE ON entries, events, progress, project_changes", "SELECT ON removals"},
			migrate.Remover: {
				"SELECT, DELETE ON entries, events, progress", "SELECT, INSERT, UPDATE, DELETE ON removals, project_changes",
			},
		},
	}
}

// Store reads records.
type Store struct {
	pool    pgdb.Querier
	primary pgdb.Querier
}

// New returns a Store that reads from pool, whose role needs SELECT. It reads from primary if the result must not
// lag.
func New(pool, primary pgdb.Querier) *Store { return &Store{pool: pool, primary: primary} }

// Entry returns one entry as JSON. The error is an EntryNotFound if the project has no such entry.
func (s *Store) Entry(ctx context.Context, projectID, entryID string) ([]byte, error) {
	project := wire.AppendText(nil, []byte(projectID))
	appendRecord := func(dst []byte, row *pgdb.Raw) []byte { return appendEntry(dst, project, row) }
	return pagelist.One(ctx, s.pool, appendRecord, apierr.NoEntry(entryID), getEntry, projectID, entryID)
}

// Entries opens a page of a project's entries.
func (s *Store) Entries(ctx context.Context, l entry.List, page pagelist.Page) (*pagelist.List, error) {
	page.Moves, page.Scans = l.Moves(), scans(l)
	return pagelist.Open(ctx, entryQuery(s.pool, entryColumns, l), page)
}

// PageViews opens a page of a project's entries with their page views, ordered by update.
func (s *Store) PageViews(ctx context.Context, l entry.List, page pagelist.Page) (*pagelist.List, error) {
	page.Moves, page.Scans = l.Moves(), scans(l)
	return pagelist.Open(ctx, newViewSource(s.pool, l), page)
}

// Events opens a page of an entry's events. The error is an EntryNotFound if the project has no such entry.
func (s *Store) Events(ctx context.Context, projectID, entryID string, descending bool, page pagelist.Page) (*pagelist.List, error) {
	return pagelist.Open(ctx, eventQuery(s.pool, projectID, entryID, descending), page)
}
