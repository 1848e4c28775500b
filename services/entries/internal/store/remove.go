package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/shared/postgres/insert"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
)

// Every removal takes numbers of the project first, as ingest does. So a removal sees all records that were stored
// before, and later ingest sees the tombstones of the removal. A search that takes long runs before the transaction,
// which confirms the results under the lock.

const (
	deleteEntries = `
DELETE FROM entries
WHERE project_id = $1 AND entry_id = ANY($2::text[])`

	deleteEvents = `
DELETE FROM events
WHERE project_id = $1 AND entry_id = ANY($2::text[])`

	deleteProgress = `
DELETE FROM progress
WHERE project_id = $1 AND entry_id = ANY($2::text[])`
)

// Statements that write tombstones. A tombstone says why an entry was removed, and is unique for the entry. A later
// removal overwrites the tombstone of a purged entry, but never the tombstone of an erased entry.
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

var removalsPut = insert.Put{Arrays: putRemovals, Values: putRemoval, Key: 1}

// Statements of removals. The first two select the entries of a contact, and the entries that an event of the contact
// names. The next two select any entries of a project. The last three delete the tombstones, the lost numbers
// and the counter of a removed project.
const (
	entriesOfContact = `
SELECT entry_id
FROM entries
WHERE project_id = $1 AND contact_id = $2
LIMIT $3`

	entriesOfContactEvents = `
SELECT DISTINCT entry_id
FROM events
WHERE project_id = $1 AND contact_id = $2
ORDER BY entry_id
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
ORDER BY entry_id
LIMIT $2`

	removeTombstones = `
DELETE FROM removals
WHERE project_id = $1 AND entry_id <= (
    SELECT w.entry_id
    FROM (SELECT entry_id FROM removals WHERE project_id = $1 ORDER BY entry_id LIMIT $2) w
    ORDER BY w.entry_id DESC
    LIMIT 1)`

	deleteLost = `
DELETE FROM lost_numbers
WHERE project_id = $1`

	deleteCounter = `
DELETE FROM project_changes
WHERE project_id = $1`
)

const (
	// removedAtOnce is how many entries one transaction removes at most, with all their events. The transaction blocks
	// the project's writers until it ends.
	removedAtOnce = 500

	// tombstonesAtOnce is how many tombstones of a removed project one transaction removes at most.
	tombstonesAtOnce = 10_000

	// removedByRequest is how many transactions one request to purge or to remove a project runs at most. So one
	// request removes at most 10,000 entries.
	removedByRequest = 20
)

// Remover removes entries and events of projects. The role of its pool may delete.
type Remover struct {
	pool    *pgdb.Pool
	numbers numbering
	now     func() time.Time
}

// NewRemover returns a Remover over pool, which calls lost. The pool's role needs SELECT and DELETE, and must be able to write
// tombstones and counters.
func NewRemover(pool *pgdb.Pool, lost Lost) *Remover {
	return &Remover{pool: pool, numbers: numbering{pool: pool, lost: lost}, now: time.Now}
}

// Erase removes an entry and its events for good. An id without an entry also gets a tombstone, because data of the
// id may still arrive. Erase can be repeated.
func (m *Remover) Erase(ctx context.Context, projectID, entryID string) (change.Removed, error) {
	r, _, err := m.remove(ctx, projectID, change.Erased, 1, func(context.Context, numberedTx) ([]string, error) {
		return []string{entryID}, nil
	})
	return r, err
}

// EraseContact removes all entries of a contact, and every entry that an event of the contact names, with their
// events. The result counts the removed records, even if there is an error. EraseContact can be repeated.
func (m *Remover) EraseContact(ctx context.Context, projectID, contactID string) (all change.Removed, err error) {
	for {
		one, ids, err := m.remove(ctx, projectID, change.Erased, removedAtOnce, func(ctx context.Context, tx numberedTx) ([]string, error) {
			ids, err := tx.ids(ctx, entriesOfContact, contactID, removedAtOnce)
			if err != nil || len(ids) > 0 {
				return ids, err
			}
			return tx.ids(ctx, entriesOfContactEvents, contactID, removedAtOnce)
		})
		all.Add(one)
		if err != nil || ids == 0 {
			return all, err
		}
	}
}

// remove removes the entries that find returns, with their events, in one transaction, and leaves a tombstone for each.
// most is the greatest number of ids that find may return. remove returns how much it removed, and how many ids find
// returned.
func (m *Remover) remove(ctx context.Context, projectID string, why change.Reason, most int,
	find func(ctx context.Context, tx numberedTx) ([]string, error)) (r change.Removed, found int, err error) {
	err = m.numbers.inTx(ctx, projectID, most, func(ctx context.Context, tx numberedTx) error {
		r, found = change.Removed{}, 0
		ids, err := find(ctx, tx)
		if err != nil || len(ids) == 0 {
			return err
		}
		found = len(ids)
		if r, err = tx.deleteRecords(ctx, ids); err != nil {
			return err
		}
		_, err = tx.put(ctx, removalsPut, removalColumnsOf(ids, tx.first, m.now(), why)...)
		return err
	})
	if err != nil { // nothing was removed
		return change.Removed{}, 0, err
	}
	return r, found, nil
}

// deleteRecords deletes entries with their progress and their events, and returns how many entries and events it
// deleted.
func (t numberedTx) deleteRecords(ctx context.Context, ids []string) (r change.Removed, err error) {
	if r.Events, err = t.exec(ctx, deleteEvents, ids); err != nil {
		return r, err
	}
	if _, err = t.exec(ctx, deleteProgress, ids); err != nil {
		return r, err
	}
	r.Entries, err = t.exec(ctx, deleteEntries, ids)
	return r, err
}

// removalColumnsOf returns the columns of tombstones in the order of insertRemovals, without the project. The
// tombstones get the numbers from seq on.
func removalColumnsOf(ids []string, seq int64, at time.Time, why change.Reason) []any {
	return []any{
		ids,
		numbers(seq, len(ids)),
		insert.Column(ids, func(*string) pgtype.Timestamptz { return pgdb.Timestamp(at.UnixMicro()) }),
		insert.Column(ids, func(*string) string { return string(why) }),
	}
}

// Project removes the entries, the events and the tombstones of a project, and writes no new tombstones. One call
// removes at most 10,000 entries. More in the result is true if there may be more. The result counts the removed
// records, even if there is an error. Project can be repeated.
func (m *Remover) Project(ctx context.Context, projectID string) (all change.Removed, err error) {
	for range removedByRequest {
		one, done, err := m.removeProject(ctx, projectID)
		all.Add(one)
		if err != nil || done {
			return all, err
		}
	}
	all.More = true
	return all, nil
}

// removeProject removes some entries and events of a project in one transaction. If no entries and events are left,
// removeProject removes tombstones. With the last tombstones, removeProject removes the counter and returns done.
func (m *Remover) removeProject(ctx context.Context, projectID string) (r change.Removed, done bool, err error) {
	err = m.numbers.inTx(ctx, projectID, 1, func(ctx context.Context, tx numberedTx) error {
		r, done = change.Removed{}, false
		ids, err := tx.ids(ctx, anyEntries, removedAtOnce)
		if err == nil && len(ids) == 0 {
			ids, err = tx.ids(ctx, anyEventEntries, removedAtOnce)
		}
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			r, err = tx.deleteRecords(ctx, ids)
			return err
		}
		tombstones, err := tx.exec(ctx, removeTombstones, tombstonesAtOnce)
		if err != nil || tombstones == tombstonesAtOnce {
			return err
		}
		done = true
		if _, err = tx.exec(ctx, deleteLost); err != nil {
			return err
		}
		_, err = tx.exec(ctx, deleteCounter)
		return err
	})
	if err != nil {
		return change.Removed{}, false, err
	}
	return r, done, nil
}
