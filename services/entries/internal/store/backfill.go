package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// unnumbered finds projects with rows from before the feed, which have no numbers.
const unnumbered = `
SELECT project_id
FROM project_changes
WHERE NOT numbered
ORDER BY project_id
LIMIT 1000`

// A row gets its position in the list of keys as its number, so that no number comes twice. The order makes Postgres
// use the index by seq. Without it, Postgres would read all rows that have no number to find a few.
const (
	unnumberedEntries = `
SELECT entry_id
FROM entries
WHERE project_id = $1 AND seq IS NULL
ORDER BY seq
LIMIT $2`

	numberEntries = `
UPDATE entries
SET seq = $2::bigint + array_position($3::text[], entry_id) - 1
WHERE project_id = $1 AND entry_id = ANY($3::text[]) AND seq IS NULL`

	unnumberedEvents = `
SELECT event_key
FROM events
WHERE project_id = $1 AND seq IS NULL
ORDER BY seq
LIMIT $2`

	numberEvents = `
UPDATE events
SET seq = $2::bigint + array_position($3::bytea[], event_key) - 1
WHERE project_id = $1 AND event_key = ANY($3::bytea[]) AND seq IS NULL`

	allNumbered = `
UPDATE project_changes
SET numbered = true
WHERE project_id = $1`
)

// backfillRows is how many rows one transaction numbers. It blocks the project's writers for some milliseconds.
const backfillRows = 500

// Unnumbered returns projects with rows that have no number, at most 1000.
func (w *Writer) Unnumbered(ctx context.Context) (projects []string, err error) {
	err = w.pool.Query(ctx, func(rows pgx.Rows) (err error) {
		projects, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	}, unnumbered)
	return projects, err
}

// Backfill numbers the rows of a project that have no number. Between two transactions it pauses for as long as the
// first one took, so that ingest can run. It can run in several processes at once.
func (w *Writer) Backfill(ctx context.Context, projectID string) error {
	for {
		begin := time.Now()
		done, err := w.backfill(ctx, projectID)
		if err != nil || done {
			return err
		}
		select {
		case <-time.After(time.Since(begin)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// backfill numbers some rows, and reports whether there were none.
func (w *Writer) backfill(ctx context.Context, projectID string) (done bool, err error) {
	err = w.pool.InProjectTx(ctx, projectID, func(ctx context.Context, tx pgx.Tx) error {
		first, err := takeSeq(ctx, tx, projectID, 2*backfillRows)
		if err != nil {
			return err
		}
		entries, err := numberRows[string](ctx, tx, unnumberedEntries, numberEntries, projectID, first)
		if err != nil {
			return err
		}
		events, err := numberRows[[]byte](ctx, tx, unnumberedEvents, numberEvents, projectID, first+backfillRows)
		if err != nil {
			return err
		}
		if done = entries+events == 0; done {
			_, err = tx.Exec(ctx, allNumbered, projectID)
		}
		return err
	})
	return done, err
}

// numberRows numbers rows of one table from first on, and returns their number.
func numberRows[K any](ctx context.Context, tx pgx.Tx, find, number, projectID string, first int64) (int, error) {
	rows, err := tx.Query(ctx, find, projectID, backfillRows)
	if err != nil {
		return 0, err
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[K])
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	_, err = tx.Exec(ctx, number, projectID, first, keys)
	return len(keys), err
}
