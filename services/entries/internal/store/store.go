// Package store keeps entries and events in Postgres. It owns the service's SQL and its schema; it
// knows nothing of HTTP. Rows go from Postgres' wire into the bytes of the answer: no struct is made
// of a row.
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
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
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
		Name:       "entries",
		Migrations: sub,
		Grants: map[pgmigrate.Role][]string{
			pgmigrate.Reader: {"SELECT ON entries, events"},
			pgmigrate.Ingest: {"SELECT, INSERT, UPDATE ON entries", "SELECT, INSERT ON events"},
		},
	}
}

// Store reads.
type Store struct {
	pool pgdb.Querier
}

// New returns a Store that reads from pool, whose role needs SELECT.
func New(pool pgdb.Querier) *Store { return &Store{pool: pool} }

// Entry returns one entry as JSON. An entry that the project does not have is an EntryNotFound.
func (s *Store) Entry(ctx context.Context, projectID, entryID string) ([]byte, error) {
	row := entryRow{project: wire.AppendText(nil, []byte(projectID))}
	return pgrecord.One(ctx, s.pool, row.Append, apierr.NoEntry(entryID), getEntry, projectID, entryID)
}

// Entries opens a page of a project's entries.
func (s *Store) Entries(ctx context.Context, l entry.List, page pagelist.Page) (*pagelist.List, error) {
	page.Moves = l.Moves()
	return pagelist.Open(ctx, newEntryList(s.pool, l), page)
}

// PageViews opens a page of a project's entries with their page views.
func (s *Store) PageViews(ctx context.Context, l entry.List, page pagelist.Page) (*pagelist.List, error) {
	page.Moves = l.Moves()
	return pagelist.Open(ctx, newViewSource(s.pool, l), page)
}

// Events opens a page of an entry's events. An entry that the project does not have is an
// EntryNotFound.
func (s *Store) Events(ctx context.Context, projectID, entryID string, descending bool, page pagelist.Page) (*pagelist.List, error) {
	return pagelist.Open(ctx, newEventList(s.pool, projectID, entryID, descending), page)
}
