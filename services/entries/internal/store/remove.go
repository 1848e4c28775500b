package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pginsert"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
)

// Every removal takes its numbers first, as ingest does. So it sees all that was stored before, and ingest sees its
// tombstones after.

const (
	deleteEntries = `
DELETE FROM entries
WHERE project_id = $1 AND entry_id = ANY($2::text[])
RETURNING 1`

	deleteEvents = `
DELETE FROM events
WHERE project_id = $1 AND entry_id = ANY($2::text[])
RETURNING 1`
)

// A tombstone says once why an entry was removed. One of an erased entry never changes.
const (
	insertRemovals = `
INSERT INTO removals AS r (project_id, entry_id, seq, removed_at, reason)`

	unlessErased = `
ON CONFLICT (project_id, entry_id) DO UPDATE
SET seq = excluded.seq, removed_at = excluded.removed_at, reason = excluded.reason
WHERE r.reason = 'purged'
RETURNING 1`

	putRemovals = insertRemovals + `
SELECT $1, u.entry_id, u.seq, u.removed_at, u.reason
FROM unnest($2::text[], $3::bigint[], $4::timestamptz[], $5::text[]) AS u (entry_id, seq, removed_at, reason)
ORDER BY u.entry_id` + unlessErased

	putRemoval = insertRemovals + `
VALUES ($1, $2, $3, $4, $5)` + unlessErased
)

var removalsPut = pginsert.Put{Arrays: putRemovals, Values: putRemoval, Key: 1}

const (
	// entriesOfContact finds entries of a contact, and entries that an event of the contact names.
	entriesOfContact = `
SELECT entry_id FROM entries
WHERE project_id = $1 AND contact_id = $2
UNION
SELECT entry_id FROM events
WHERE project_id = $1 AND contact_id = $2
LIMIT $3`

	// entriesBefore finds entries that were last updated before a time.
	entriesBefore = `
SELECT entry_id
FROM entries
WHERE project_id = $1 AND updated_at < $2
ORDER BY updated_at, entry_id
LIMIT $3`

	// orphansBefore finds entries that never came, and whose newest event is from before a time.
	orphansBefore = `
SELECT v.entry_id
FROM events v
WHERE v.project_id = $1
  AND NOT EXISTS (SELECT FROM entries e WHERE e.project_id = $1 AND e.entry_id = v.entry_id)
GROUP BY v.entry_id
HAVING max(v."timestamp") < $2
ORDER BY v.entry_id
LIMIT $3`

	anyEntries = `
SELECT entry_id
FROM entries
WHERE project_id = $1
LIMIT $2`

	anyEventEntries = `
SELECT DISTINCT entry_id
FROM events
WHERE project_id = $1
LIMIT $2`

	deleteRemovals = `
DELETE FROM removals
WHERE project_id = $1`

	deleteCounter = `
DELETE FROM project_changes
WHERE project_id = $1`
)

const (
	// removedAtOnce is how many entries one transaction removes. It holds up the project's writers for that long.
	removedAtOnce = 500

	// mostRemoved is how many entries one request removes.
	mostRemoved = 10_000
)

// Remover removes records, with a pool whose role may delete.
type Remover struct {
	pool *pgdb.Pool
	now  func() time.Time
}

// NewRemover returns a Remover over pool, whose role needs SELECT and DELETE.
func NewRemover(pool *pgdb.Pool) *Remover { return &Remover{pool: pool, now: time.Now} }

// Erase removes an entry and its events for good. An id without an entry gets a tombstone too: its data may still be on
// the way.
func (m *Remover) Erase(ctx context.Context, projectID, entryID string) (change.Removed, error) {
	return m.remove(ctx, projectID, change.Erased, func(context.Context, pgx.Tx) ([]string, error) {
		return []string{entryID}, nil
	})
}

// EraseContact removes all entries of a contact, and every entry that an event of the contact names, with their
// events. When it fails in the middle, it can be repeated.
func (m *Remover) EraseContact(ctx context.Context, projectID, contactID string) (all change.Removed, err error) {
	for {
		one, err := m.remove(ctx, projectID, change.Erased, func(ctx context.Context, tx pgx.Tx) ([]string, error) {
			return idsOf(ctx, tx, entriesOfContact, projectID, contactID, removedAtOnce)
		})
		all.Add(one)
		if err != nil || one.Entries+one.Events == 0 {
			return all, err
		}
	}
}

// Purge removes entries that were last updated before a time, in Unix microseconds, and events of entries that never
// came, if all of them are older. It removes at most 10,000 entries, and reports whether there are more.
func (m *Remover) Purge(ctx context.Context, projectID string, before int64) (all change.Removed, more bool, err error) {
	return m.removeSome(ctx, projectID, change.Purged, func(ctx context.Context, tx pgx.Tx) ([]string, error) {
		ids, err := idsOf(ctx, tx, entriesBefore, projectID, pgdb.Timestamp(before), removedAtOnce)
		if err != nil || len(ids) > 0 {
			return ids, err
		}
		return idsOf(ctx, tx, orphansBefore, projectID, pgdb.Timestamp(before), removedAtOnce)
	})
}

// removeSome removes what find finds, until it finds nothing or the request has removed as much as it may.
func (m *Remover) removeSome(ctx context.Context, projectID string, why change.Reason,
	find func(ctx context.Context, tx pgx.Tx) ([]string, error)) (all change.Removed, more bool, err error) {
	for removed := 0; removed < mostRemoved; removed += removedAtOnce {
		one, err := m.remove(ctx, projectID, why, find)
		all.Add(one)
		if err != nil || one.Entries+one.Events == 0 {
			return all, false, err
		}
	}
	return all, true, nil
}

// remove removes the entries that find finds, with their events, in one transaction.
func (m *Remover) remove(ctx context.Context, projectID string, why change.Reason,
	find func(ctx context.Context, tx pgx.Tx) ([]string, error)) (r change.Removed, err error) {
	err = m.pool.InProjectTx(ctx, projectID, func(ctx context.Context, tx pgx.Tx) error {
		r = change.Removed{}
		seq, err := takeSeq(ctx, tx, projectID, removedAtOnce)
		if err != nil {
			return err
		}
		ids, err := find(ctx, tx)
		if err != nil || len(ids) == 0 {
			return err
		}
		if r.Events, err = countOf(ctx, tx, deleteEvents, projectID, ids); err != nil {
			return err
		}
		if r.Entries, err = countOf(ctx, tx, deleteEntries, projectID, ids); err != nil {
			return err
		}
		_, err = removalsPut.StoredIn(ctx, m.pool, tx, projectID, removalColumnsOf(ids, seq, m.now(), why)...)
		return err
	})
	return r, err
}

// removalColumnsOf returns the columns of tombstones in the order of insertRemovals, numbered from seq on.
func removalColumnsOf(ids []string, seq int64, at time.Time, why change.Reason) []any {
	return []any{
		ids,
		numbers(seq, len(ids)),
		pginsert.Column(ids, func(*string) pgtype.Timestamptz { return pgdb.Timestamp(at.UnixMicro()) }),
		pginsert.Column(ids, func(*string) string { return string(why) }),
	}
}

// Project removes all that the service holds of a project, without tombstones. It removes at most 10,000 entries, and
// reports whether there is more.
func (m *Remover) Project(ctx context.Context, projectID string) (all change.Removed, more bool, err error) {
	for removed := 0; removed < mostRemoved; removed += removedAtOnce {
		one, err := m.removeProject(ctx, projectID)
		all.Add(one)
		if err != nil || one.Entries+one.Events == 0 {
			return all, false, err
		}
	}
	return all, true, nil
}

// removeProject removes some records of a project in one transaction; the tombstones and the counter when no others
// are left.
func (m *Remover) removeProject(ctx context.Context, projectID string) (r change.Removed, err error) {
	err = m.pool.InProjectTx(ctx, projectID, func(ctx context.Context, tx pgx.Tx) error {
		r = change.Removed{}
		if _, err := takeSeq(ctx, tx, projectID, 1); err != nil {
			return err
		}
		ids, err := idsOf(ctx, tx, anyEntries, projectID, removedAtOnce)
		if err == nil && len(ids) == 0 {
			ids, err = idsOf(ctx, tx, anyEventEntries, projectID, removedAtOnce)
		}
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			if _, err := tx.Exec(ctx, deleteRemovals, projectID); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, deleteCounter, projectID)
			return err
		}
		if r.Events, err = countOf(ctx, tx, deleteEvents, projectID, ids); err != nil {
			return err
		}
		r.Entries, err = countOf(ctx, tx, deleteEntries, projectID, ids)
		return err
	})
	return r, err
}

// idsOf returns the ids that a statement finds.
func idsOf(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]string, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// countOf returns how many rows a statement gives.
func countOf(ctx context.Context, tx pgx.Tx, sql string, args ...any) (int, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}
