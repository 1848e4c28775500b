package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
)

// A purge removes entries that were last updated before a time, and orphans. An orphan is an id whose entry never
// came and all of whose events are from before that time.

const (
	entriesBefore = `
SELECT entry_id
FROM entries
WHERE project_id = $1 AND updated_at < $2
ORDER BY updated_at, entry_id
LIMIT $3`

	stillBefore = `
SELECT entry_id
FROM entries
WHERE project_id = $1 AND entry_id = ANY($3::text[]) AND updated_at < $2`

	countEntriesBefore = `
SELECT count(1)
FROM entries
WHERE project_id = $1 AND updated_at < $2`
)

// A purge searches a project's events in windows, in the order of their entries' ids. Postgres finds the events of a
// window by an index. So each statement is short, even if there are many events.
const (
	// windowEnd selects the last entry id of the window that begins after the id $2, or null if there are no more
	// events.
	windowEnd = `
SELECT max(w.entry_id)
FROM (SELECT entry_id FROM events WHERE project_id = $1 AND entry_id > $2 ORDER BY entry_id LIMIT $3) w`

	orphansBefore = `
SELECT v.entry_id
FROM events v
WHERE v.project_id = $1 AND v.entry_id > $3 AND v.entry_id <= $4
  AND NOT EXISTS (SELECT FROM entries e WHERE e.project_id = $1 AND e.entry_id = v.entry_id)
GROUP BY v.entry_id
HAVING max(v."timestamp") < $2
ORDER BY v.entry_id
LIMIT $5`

	stillOrphans = `
SELECT v.entry_id
FROM events v
WHERE v.project_id = $1 AND v.entry_id = ANY($3::text[])
  AND NOT EXISTS (SELECT FROM entries e WHERE e.project_id = $1 AND e.entry_id = v.entry_id)
GROUP BY v.entry_id
HAVING max(v."timestamp") < $2`

	// countEventsBefore counts the events in a window that a purge would remove.
	countEventsBefore = `
SELECT coalesce(sum(v.events), 0)::bigint
FROM (
    SELECT entry_id, count(1) AS events, max("timestamp") AS newest
    FROM events
    WHERE project_id = $1 AND entry_id > $3 AND entry_id <= $4
    GROUP BY entry_id
) v
LEFT JOIN entries e ON e.project_id = $1 AND e.entry_id = v.entry_id
WHERE coalesce(e.updated_at, v.newest) < $2`
)

const (
	// windowEvents is how many events a window has. A window also has all further events of its last entry.
	windowEvents = 20_000

	// windowsByRequest is how many windows one request searches at most.
	windowsByRequest = 10
)

// Purge removes the entries that were last updated before a time, in Unix microseconds, with their events. Purge also
// removes the events of an id without an entry if all of them are from before that time.
//
// One call removes the data of at most 10,000 ids, and searches a part of the events, after the id after. More in the
// result is true if there may be more to remove. The next call goes on after the id next. The result counts the removed
// records, even if there is an error. Purge can be repeated.
func (m *Remover) Purge(ctx context.Context, projectID string, before int64, after string) (r change.Removed, next string, err error) {
	p := &purge{Remover: m, projectID: projectID, before: pgdb.Timestamp(before), after: after, left: removedByRequest}
	err = p.run(ctx)
	return p.removed, p.after, err
}

// purge is the state of one call of [Remover.Purge] or [Remover.Older].
type purge struct {
	*Remover
	projectID string
	before    pgtype.Timestamptz
	after     string // the last id of the windows that were searched; no id is empty
	left      int    // how many more transactions the call may run
	removed   change.Removed
}

func (p *purge) run(ctx context.Context) error {
	entries := func(ctx context.Context) ([]string, error) {
		return p.ids(ctx, entriesBefore, p.projectID, p.before, removedAtOnce)
	}
	if err := p.each(ctx, entries, stillBefore); err != nil || p.removed.More {
		return err
	}
	return p.windows(ctx, func(end string) error {
		orphans := func(ctx context.Context) ([]string, error) {
			return p.ids(ctx, orphansBefore, p.projectID, p.before, p.after, end, removedAtOnce)
		}
		return p.each(ctx, orphans, stillOrphans)
	})
}

// each removes the ids that find returns, if the statement still selects the ids under the lock. each ends when find
// returns none. If the call has run all its transactions before that, each sets More in p.removed.
func (p *purge) each(ctx context.Context, find func(context.Context) ([]string, error), still string) error {
	for {
		found, err := find(ctx)
		if err != nil || len(found) == 0 {
			return err
		}
		if p.left == 0 {
			p.removed.More = true
			return nil
		}
		p.left--
		one, _, err := p.remove(ctx, p.projectID, change.Purged, removedAtOnce, func(ctx context.Context, tx numberedTx) ([]string, error) {
			return tx.ids(ctx, still, p.before, found)
		})
		if err != nil {
			return err
		}
		p.removed.Add(one)
	}
}

// Older returns how many entries and events [Remover.Purge] would remove now. One call counts a part of the events, as
// Purge searches them, and the first call counts the entries.
func (m *Remover) Older(ctx context.Context, projectID string, before int64, after string) (r change.Removed, next string, err error) {
	p := &purge{Remover: m, projectID: projectID, before: pgdb.Timestamp(before), after: after}
	if after == "" {
		if err := m.pool.QueryRow(ctx, []any{&p.removed.Entries}, countEntriesBefore, projectID, p.before); err != nil {
			return r, "", err
		}
	}
	err = p.windows(ctx, func(end string) error {
		events := 0
		err := m.pool.QueryRow(ctx, []any{&events}, countEventsBefore, projectID, p.before, p.after, end)
		p.removed.Events += events
		return err
	})
	return p.removed, p.after, err
}

// windows calls do for each window of the project's events, until do sets More in p.removed or returns an error. A
// window has the entry ids after p.after, up to and including the end. After the last window of a request, windows sets
// More.
func (p *purge) windows(ctx context.Context, do func(end string) error) error {
	for range windowsByRequest {
		var end *string
		if err := p.pool.QueryRow(ctx, []any{&end}, windowEnd, p.projectID, p.after, windowEvents); err != nil || end == nil {
			return err
		}
		if err := do(*end); err != nil || p.removed.More {
			return err
		}
		p.after = *end
	}
	p.removed.More = true
	return nil
}

// ids runs a query outside of a transaction, and returns the ids in its only column.
func (m *Remover) ids(ctx context.Context, sql string, args ...any) (ids []string, err error) {
	err = m.pool.Query(ctx, func(rows pgx.Rows) (err error) {
		ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	}, sql, args...)
	return ids, err
}
