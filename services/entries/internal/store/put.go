package store

import (
	"context"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/shared/postgres/insert"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// Each INSERT has the two forms that [insert.Put] requires, and returns a row for each record that it stored. The ON
// CONFLICT of an INSERT has no parameter, because Citus allows none there.

const insertEntries = `
INSERT INTO entries AS e (project_id, entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data, seq)`

// unlessOlder replaces a stored entry, unless the stored entry has a later update. With an equal time of update,
// unlessOlder replaces the entry only if the content differs. Each returned row says whether an entry was replaced.
const unlessOlder = `
ON CONFLICT (project_id, entry_id) DO UPDATE
SET group_id = excluded.group_id, embeddable_id = excluded.embeddable_id, contact_id = excluded.contact_id,
    created_at = excluded.created_at, updated_at = excluded.updated_at, entry_data = excluded.entry_data, seq = excluded.seq,
    replaced = true
WHERE excluded.updated_at > e.updated_at
   OR excluded.updated_at = e.updated_at
  AND (excluded.group_id, excluded.embeddable_id, excluded.contact_id, excluded.created_at, excluded.entry_data)
      IS DISTINCT FROM (e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.entry_data)
RETURNING e.replaced`

const putEntries = insertEntries + `
SELECT $1, u.entry_id, u.group_id, u.embeddable_id, u.contact_id, u.created_at, u.updated_at, u.entry_data, u.seq
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::text[], $9::bigint[])
     AS u (entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data, seq)
ORDER BY u.entry_id` + unlessOlder

const putEntry = insertEntries + `
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)` + unlessOlder

const insertEvents = `
INSERT INTO events (project_id, event_key, entry_id, contact_id, group_id, embeddable_id, embeddable_version_number,
                    "timestamp", page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
                    event_type, view_type, custom_event_name, custom_event_props, url, event_id, seq)`

const unlessThere = `
ON CONFLICT (project_id, event_key) DO NOTHING
RETURNING 1`

// putEvents inserts events in the order of their lines, so that their arrival numbers follow that order.
const putEvents = insertEvents + `
SELECT $1, u.event_key, u.entry_id, u.contact_id, u.group_id, u.embeddable_id, u.embeddable_version_number,
       u."timestamp", u.page_id, u.page_key, u.page_index, u.max_page_id, u.max_page_key, u.max_page_index, u.total_pages,
       u.event_type, u.view_type, u.custom_event_name, u.custom_event_props, u.url, u.event_id, u.seq
FROM unnest($2::bytea[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[],
            $9::text[], $10::text[], $11::bigint[], $12::text[], $13::text[], $14::bigint[], $15::bigint[],
            $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::bigint[])
     WITH ORDINALITY AS u (event_key, entry_id, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp",
            page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
            event_type, view_type, custom_event_name, custom_event_props, url, event_id, seq, line)
ORDER BY u.line` + unlessThere

const putEvent = insertEvents + `
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)` + unlessThere

// Writer stores incoming entries and events, and keeps the progress of entries up to date. The role of its pool may
// write.
type Writer struct {
	numbers numbering
}

// NewWriter returns a Writer to pool, which calls lost. The pool's role needs SELECT, INSERT and UPDATE.
func NewWriter(pool *pgdb.Pool, lost Lost) *Writer { return &Writer{numbering{pool: pool, lost: lost}} }

var (
	entriesPut = insert.Put{Arrays: putEntries, Values: putEntry, Key: 1}
	eventsPut  = insert.Put{Arrays: putEvents, Values: putEvent}
)

// erasedAmong selects the entries in $2 that were erased. erasedAmong must run after takeNumbers in the same
// transaction. As a later statement, erasedAmong also sees the erasures that committed while takeNumbers waited for
// the lock.
const erasedAmong = `
SELECT entry_id
FROM removals
WHERE project_id = $1 AND entry_id = ANY($2) AND reason = 'erased'`

// PutEntries stores entries of one project in one transaction. The outcome is the same as storing the entries one by
// one. An entry that is older than the stored entry, or whose id was erased, is not stored. PutEntries may be repeated.
func (w *Writer) PutEntries(ctx context.Context, projectID string, entries []entry.Entry) (change.Stored, error) {
	return put(ctx, &w.numbers, projectID, entries, func(e *entry.Entry) string { return e.EntryID },
		func(ctx context.Context, tx numberedTx, entries []entry.Entry) (stored, replaced int, err error) {
			batches := insert.Batches(entries, func(e *entry.Entry) string { return e.EntryID })
			distinct := insert.Column(batches[0], func(e *entry.Entry) string { return e.EntryID })
			seq := tx.first
			for _, batch := range batches {
				batchStored, batchReplaced, err := entriesPut.ReplacedIn(ctx, tx.pool, tx.tx, tx.projectID, entryColumnsOf(batch, seq)...)
				if err != nil {
					return 0, 0, err
				}
				stored, replaced = stored+batchStored, replaced+batchReplaced
				seq += int64(len(batch))
			}
			if stored > 0 {
				err = tx.followEntries(ctx, distinct)
			}
			return stored, replaced, err
		})
}

// PutEvents stores events of one project in one transaction. An event that is stored already, or whose entry was
// erased, changes nothing. So PutEvents may be repeated.
func (w *Writer) PutEvents(ctx context.Context, projectID string, events []entry.Event) (change.Stored, error) {
	return put(ctx, &w.numbers, projectID, events, func(e *entry.Event) string { return e.EntryID },
		func(ctx context.Context, tx numberedTx, events []entry.Event) (stored, replaced int, err error) {
			stored, err = tx.put(ctx, eventsPut, eventColumnsOf(events, tx.first)...)
			if err != nil || stored == 0 {
				return stored, 0, err
			}
			return stored, 0, tx.followViews(ctx, events, stored == len(events))
		})
}

// put stores records of one project in one transaction. put takes a number for each record, leaves out the records of
// erased entries, and passes the other records to store.
func put[T any](ctx context.Context, n *numbering, projectID string, records []T, entryID func(*T) string,
	store func(ctx context.Context, tx numberedTx, records []T) (stored, replaced int, err error)) (s change.Stored, err error) {
	err = n.inTx(ctx, projectID, len(records), func(ctx context.Context, tx numberedTx) error {
		s = change.Stored{}
		erased, err := tx.erasedOf(ctx, insert.Column(records, entryID))
		if err != nil {
			return err
		}
		kept := records
		if len(erased) > 0 {
			kept = nil
			for i := range records {
				if erased[entryID(&records[i])] {
					s.Erased = append(s.Erased, i)
				} else {
					kept = append(kept, records[i])
				}
			}
		}
		if len(kept) == 0 {
			return nil
		}
		s.Count, s.Replaced, err = store(ctx, tx, kept)
		return err
	})
	return s, err
}

// erasedOf returns which of the entries with the given ids were erased. The map is nil if no entry was erased.
func (t numberedTx) erasedOf(ctx context.Context, ids []string) (map[string]bool, error) {
	found, err := t.ids(ctx, erasedAmong, ids)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	erased := make(map[string]bool, len(found))
	for _, id := range found {
		erased[id] = true
	}
	return erased, nil
}

// numbers returns n consecutive numbers, which begin with first.
func numbers(first int64, n int) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = first + int64(i)
	}
	return list
}

// entryColumnsOf returns the columns of entries in the order of insertEntries, without the project. The entries get
// the numbers from seq on.
func entryColumnsOf(entries []entry.Entry, seq int64) []any {
	text := func(of func(*entry.Entry) string) []string { return insert.Column(entries, of) }
	return []any{
		text(func(e *entry.Entry) string { return e.EntryID }),
		text(func(e *entry.Entry) string { return e.GroupID }),
		text(func(e *entry.Entry) string { return e.EmbeddableID }),
		text(func(e *entry.Entry) string { return e.ContactID }),
		insert.Column(entries, func(e *entry.Entry) pgtype.Timestamptz { return pgdb.Timestamp(e.CreatedAt) }),
		insert.Column(entries, func(e *entry.Entry) pgtype.Timestamptz { return pgdb.Timestamp(e.UpdatedAt) }),
		text(func(e *entry.Entry) string { return e.Data }),
		numbers(seq, len(entries)),
	}
}

// eventColumnsOf returns the columns of events in the order of insertEvents, without the project. The events get the
// numbers from seq on.
func eventColumnsOf(events []entry.Event, seq int64) []any {
	text := func(of func(*entry.Event) string) []string { return insert.Column(events, of) }
	textOrNull := func(of func(*entry.Event) *string) []*string { return insert.Column(events, of) }
	intOrNull := func(of func(*entry.Event) *int64) []*int64 { return insert.Column(events, of) }
	return []any{
		insert.Column(events, func(e *entry.Event) []byte { key := e.Key(); return key[:] }),
		text(func(e *entry.Event) string { return e.EntryID }),
		text(func(e *entry.Event) string { return e.ContactID }),
		text(func(e *entry.Event) string { return e.GroupID }),
		text(func(e *entry.Event) string { return e.EmbeddableID }),
		intOrNull(func(e *entry.Event) *int64 { return e.Version }),
		insert.Column(events, func(e *entry.Event) pgtype.Timestamptz { return pgdb.Timestamp(e.Timestamp) }),
		textOrNull(func(e *entry.Event) *string { return e.PageID }),
		textOrNull(func(e *entry.Event) *string { return e.PageKey }),
		intOrNull(func(e *entry.Event) *int64 { return e.PageIndex }),
		textOrNull(func(e *entry.Event) *string { return e.MaxPageID }),
		textOrNull(func(e *entry.Event) *string { return e.MaxPageKey }),
		intOrNull(func(e *entry.Event) *int64 { return e.MaxPageIndex }),
		intOrNull(func(e *entry.Event) *int64 { return e.TotalPages }),
		text(func(e *entry.Event) string { return e.EventType }),
		textOrNull(func(e *entry.Event) *string { return e.ViewType }),
		textOrNull(func(e *entry.Event) *string { return e.CustomEventName }),
		textOrNull(func(e *entry.Event) *string { return e.CustomEventProps }),
		textOrNull(func(e *entry.Event) *string { return e.URL }),
		textOrNull(func(e *entry.Event) *string { return e.EventID }),
		numbers(seq, len(events)),
	}
}
