// Package store keeps entries and events in Postgres. It owns the service's SQL and its schema; it
// knows nothing of HTTP. Rows go from Postgres' wire into the bytes of the answer: no struct is made
// of a row.
package store

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/keyset"
	"github.com/lectern-dev/lectern/shared/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the service's database: its migrations, and what each role may do. The reader selects. The
// ingest role also writes, and deletes nothing.
func Schema() pgdb.Schema {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return pgdb.Schema{
		Name:       "entries",
		Migrations: sub,
		Grants: map[pgdb.Role][]string{
			pgdb.Reader: {"SELECT ON entries, events"},
			pgdb.Ingest: {"SELECT, INSERT, UPDATE ON entries", "SELECT, INSERT ON events"},
		},
	}
}

// Store reads with one pool.
type Store struct {
	pool *pgdb.Pool
}

// New returns a Store that reads from pool, whose role needs SELECT.
func New(pool *pgdb.Pool) *Store { return &Store{pool: pool} }

// Entry returns one entry as JSON. An entry that the project does not have is an EntryNotFound.
func (s *Store) Entry(ctx context.Context, projectID, entryID string) ([]byte, error) {
	var body []byte
	err := s.pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for rows.Next() {
			raw.Next(rows)
			body = append(entry.Append(nil, quoted(projectID), &raw), '\n')
		}
		return nil
	}, getEntry, projectID, entryID)
	if err == nil && body == nil {
		err = apierr.NoEntry(entryID)
	}
	return body, err
}

// Entries opens a page of a project's entries.
func (s *Store) Entries(ctx context.Context, l entry.List, page keyset.Page) (*keyset.List, error) {
	page.Moves = l.Moves()
	return keyset.Open(ctx, &entrySource{entryRange: s.entryRange(l)}, page)
}

// PageViews opens a page of a project's entries with their page views.
func (s *Store) PageViews(ctx context.Context, l entry.List, page keyset.Page) (*keyset.List, error) {
	page.Moves = l.Moves()
	return keyset.Open(ctx, &viewSource{entryRange: s.entryRange(l), urls: l.IncludeURLs}, page)
}

// Events opens a page of an entry's events. An entry that the project does not have is an
// EntryNotFound.
func (s *Store) Events(ctx context.Context, projectID, entryID string, descending bool, page keyset.Page) (*keyset.List, error) {
	return keyset.Open(ctx, newEventSource(s.pool, projectID, entryID, descending), page)
}

// quoted gives s as a JSON string.
func quoted(s string) []byte {
	b, _ := json.Marshal(s) // a string always marshals
	return b
}

// A result that is left before its end is read on and dropped, when the rest is short. A long one is
// ended with its connection, which costs a new one.
const cheapRest = 8 << 20 // bytes

// long tells whether the rest of a result is: of limit rows, read have been, of bytes together.
func long(read, limit, bytes int) bool {
	return (limit-read)*(bytes/max(read, 1)) > cheapRest
}

// leave is what a query returns that was left in the middle, nil for what then counts as its success.
func leave(err error, left bool) error {
	if left && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
