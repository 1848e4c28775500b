package store

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/pagelist"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pgmigrate"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
)

// Statements of the version before the feed, which store records.
const (
	putEntryBefore = `
INSERT INTO entries AS e (project_id, entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data)
VALUES ($1, $2, 'g', 'e', 'c', to_timestamp(0), to_timestamp(1), '{}')
ON CONFLICT (project_id, entry_id) DO UPDATE
SET group_id = excluded.group_id, embeddable_id = excluded.embeddable_id, contact_id = excluded.contact_id,
    created_at = excluded.created_at, updated_at = excluded.updated_at, entry_data = excluded.entry_data
WHERE excluded.updated_at >= e.updated_at
RETURNING 1`

	putEventBefore = `
INSERT INTO events (project_id, event_key, entry_id, contact_id, group_id, embeddable_id, "timestamp", event_type)
VALUES ($1, decode(md5($2), 'hex'), $2, 'c', 'g', 'e', to_timestamp(1), 'x')
ON CONFLICT (project_id, event_key) DO NOTHING
RETURNING 1`
)

// TestFeedUpgrade upgrades a database with rows from before the feed, while a long transaction reads them. The upgrade
// blocks no reader for long. Until all rows have numbers, the feed never reports a reader as current. The previous
// version cannot store records without numbers.
func TestFeedUpgrade(t *testing.T) {
	ctx := t.Context()
	first, err := fs.ReadFile(Schema().Migrations, "0001_entries_and_events.sql")
	if err != nil {
		t.Fatal(err)
	}
	before := pgmigrate.Schema{Name: Schema().Name, Migrations: fstest.MapFS{"0001_entries_and_events.sql": {Data: first}}}
	db := pgtest.Database(t, before)
	owner := openPool(t, db.OwnerURL)
	storeBefore := func(project, entryID string) error {
		return owner.InProjectTx(ctx, project, func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, putEntryBefore, project, entryID); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, putEventBefore, project, entryID)
			return err
		})
	}
	for _, project := range []string{"pr_1", "pr_2"} {
		for _, id := range []string{"en_1", "en_2"} {
			if err := storeBefore(project, id); err != nil {
				t.Fatal(err)
			}
		}
	}

	long, err := pgx.Connect(ctx, db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close(context.WithoutCancel(ctx))
	if _, err := long.Exec(ctx, `BEGIN; SELECT count(*) FROM entries WHERE project_id = 'pr_1'`); err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() {
		migrated <- pgmigrate.Migrate(context.WithoutCancel(ctx), db.OwnerURL, Schema(), map[pgmigrate.Role]string{
			pgmigrate.Reader: pgmigrate.UserOf(db.ReaderURL), pgmigrate.Ingest: pgmigrate.UserOf(db.IngestURL),
		}, slog.New(slog.DiscardHandler))
	}()
	for range 20 { // readers that start while the migration waits for the table
		reading, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := owner.Query(reading, func(rows pgx.Rows) error {
			_, err := pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		}, `SELECT entry_id FROM entries WHERE project_id = 'pr_2'`)
		cancel()
		if err != nil {
			t.Fatalf("a reader during the migration: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	select {
	case err := <-migrated:
		t.Fatalf("the migration ended while a transaction used the table: %v", err)
	default:
	}
	if _, err := long.Exec(ctx, `COMMIT`); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}

	for _, entryID := range []string{"en_1", "en_3"} {
		err := pgdb.Fault(storeBefore("pr_1", entryID))
		if e, ok := errors.AsType[*apierr.Error](err); !ok || e.Code() != apierr.Unavailable {
			t.Errorf("the version before stores %s: %v", entryID, err)
		}
	}
	reader := openPool(t, db.ReaderURL)
	s, w := New(reader, reader), NewWriter(openPool(t, db.IngestURL))
	ask := change.Ask{ProjectID: "pr_1", Types: change.All, Limit: pagelist.All, Format: pagelist.NDJSON}
	read := func() (lines int, more bool) {
		t.Helper()
		page, err := s.Changes(ctx, ask)
		if err != nil {
			t.Fatal(err)
		}
		defer page.Close()
		for piece, err := range page.Chunks() {
			if err != nil {
				t.Fatal(err)
			}
			lines += strings.Count(string(piece), "\n")
		}
		return lines, page.More
	}
	if lines, more := read(); lines != 0 || !more {
		t.Errorf("before the rows are numbered, the feed has %d changes, more: %v", lines, more)
	}
	// This is the state between two migrations: the project is not listed yet.
	if _, err := owner.Exec(ctx, `DELETE FROM project_changes WHERE project_id = 'pr_1'`); err != nil {
		t.Fatal(err)
	}
	if lines, more := read(); lines != 0 || !more {
		t.Errorf("before the project is listed, the feed has %d changes, more: %v", lines, more)
	}
	if _, err := owner.Exec(ctx, `INSERT INTO project_changes VALUES ('pr_1', 0, false)`); err != nil {
		t.Fatal(err)
	}
	projects, err := w.Unnumbered(ctx)
	if err != nil || len(projects) != 2 {
		t.Fatalf("projects to number: %v, %v", projects, err)
	}
	for _, project := range projects {
		if err := w.Backfill(ctx, project); err != nil {
			t.Fatal(err)
		}
	}
	if lines, more := read(); lines != 4 || more {
		t.Errorf("after the rows are numbered, the feed has %d changes, more: %v", lines, more)
	}
}

// openPool opens a pool that is closed when the test ends.
func openPool(t *testing.T, url string) *pgdb.Pool {
	t.Helper()
	pool, err := pgdb.Open(t.Context(), config.NewSecret(url), pgdb.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
