package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/insert"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// In these statements, LATERAL keeps Postgres from reading a whole table for which it has no statistics yet.

// viewedOf selects the entries in $2 that have progress, and so have page views.
const viewedOf = `
SELECT u.entry_id
FROM unnest($2::text[]) AS u (entry_id)
CROSS JOIN LATERAL (SELECT FROM progress p WHERE p.project_id = $1 AND p.entry_id = u.entry_id LIMIT 1) p`

// partsOf selects the progress of the entries in $2, with the embeddable and the times of each entry. The columns of an
// entry that is not stored are null, and so are the columns of missing progress.
const partsOf = `
SELECT u.entry_id, e.embeddable_id, e.created_at, e.updated_at,
       p.part, p.version, p.several, p.furthest, p.ended, p.completed_after, p.cells, p.first_view, p.latest_view, p.waits
FROM unnest($2::text[]) AS u (entry_id)
LEFT JOIN LATERAL (
    SELECT e.embeddable_id, e.created_at, e.updated_at FROM entries e WHERE e.project_id = $1 AND e.entry_id = u.entry_id LIMIT 1
) e ON true
LEFT JOIN LATERAL (
    SELECT p.part, p.version, p.several, p.furthest, p.ended, p.completed_after, p.cells, p.first_view, p.latest_view, p.waits
    FROM progress p
    WHERE p.project_id = $1 AND p.entry_id = u.entry_id
    ORDER BY p.part
) p ON true
ORDER BY u.entry_id, p.part`

// viewsOf selects the page views of the entries in $2, sorted by entry, time and arrival number.
const viewsOf = `
SELECT u.entry_id, v.embeddable_version_number, v.page_index, v.total_pages, v."timestamp"
FROM unnest($2::text[]) AS u (entry_id)
CROSS JOIN LATERAL (
    SELECT v.embeddable_version_number, v.page_index, v.total_pages, v."timestamp", v.arrival
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = u.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival
) v
ORDER BY u.entry_id, v."timestamp", v.arrival`

const insertProgress = `
INSERT INTO progress AS p (project_id, entry_id, part, version, several, embeddable_id, created_at, updated_at,
                           furthest, ended, completed_after, cells, first_view, latest_view, waits)`

const unlessSame = `
ON CONFLICT (project_id, entry_id, part) DO UPDATE
SET version = excluded.version, several = excluded.several, embeddable_id = excluded.embeddable_id,
    created_at = excluded.created_at, updated_at = excluded.updated_at, furthest = excluded.furthest,
    ended = excluded.ended, completed_after = excluded.completed_after, cells = excluded.cells,
    first_view = excluded.first_view, latest_view = excluded.latest_view, waits = excluded.waits
WHERE (excluded.embeddable_id, excluded.created_at, excluded.updated_at, excluded.version, excluded.several,
       excluded.furthest, excluded.ended, excluded.completed_after, excluded.cells,
       excluded.first_view, excluded.latest_view, excluded.waits)
      IS DISTINCT FROM (p.embeddable_id, p.created_at, p.updated_at, p.version, p.several,
       p.furthest, p.ended, p.completed_after, p.cells, p.first_view, p.latest_view, p.waits)
RETURNING 1`

const putProgress = insertProgress + `
SELECT $1, u.entry_id, u.part, u.version, u.several, u.embeddable_id, u.created_at, u.updated_at,
       u.furthest, u.ended, u.completed_after, u.cells, u.first_view, u.latest_view, u.waits
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::boolean[], $6::text[], $7::timestamptz[], $8::timestamptz[],
            $9::bigint[], $10::boolean[], $11::bigint[], $12::bytea[], $13::bigint[], $14::bigint[], $15::bigint[])
     AS u (entry_id, part, version, several, embeddable_id, created_at, updated_at, furthest, ended, completed_after, cells,
           first_view, latest_view, waits)
ORDER BY u.entry_id, u.part` + unlessSame

const putOneProgress = insertProgress + `
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)` + unlessSame

var progressPut = insert.Put{Arrays: putProgress, Values: putOneProgress, Key: 2}

// entryProgress is the progress of an entry, with columns of the entry itself. The columns of the entry are nil if
// the entry is not stored.
type entryProgress struct {
	id               string
	embeddable       *string
	created, updated *time.Time
	parts            []insight.Progress
}

// followEntries copies the embeddable and the times of stored entries to their progress. ids are the ids of the entries
// that the transaction has received.
func (t numberedTx) followEntries(ctx context.Context, ids []string) error {
	viewed, err := t.ids(ctx, viewedOf, ids)
	if err != nil || len(viewed) == 0 {
		return err
	}
	all, err := t.readProgress(ctx, viewed)
	if err != nil {
		return err
	}
	return t.putProgress(ctx, all)
}

// followViews updates progress after events were stored. followViews adds the page views of an entry to its progress
// if allNew is true and no older view is later. Otherwise followViews computes the progress again from all page views
// of the entry.
func (t numberedTx) followViews(ctx context.Context, events []entry.Event, allNew bool) error {
	views := map[string][]insight.View{}
	var ids []string
	for i := range events {
		if e := &events[i]; e.EventType == entry.PageViewed {
			if views[e.EntryID] == nil {
				ids = append(ids, e.EntryID)
			}
			views[e.EntryID] = append(views[e.EntryID], insight.View{Version: e.Version, Page: *e.PageIndex, TotalPages: e.TotalPages, At: e.Timestamp})
		}
	}
	if len(ids) == 0 {
		return nil
	}
	all, err := t.readProgress(ctx, ids)
	if err != nil {
		return err
	}
	late := map[string]*entryProgress{}
	for i := range all {
		e, added := &all[i], views[all[i].id]
		slices.SortStableFunc(added, func(a, b insight.View) int { return cmp.Compare(a.At, b.At) })
		if !allNew || e.parts != nil && added[0].At < e.parts[0].Latest {
			e.parts, late[e.id] = nil, e
			continue
		}
		for _, v := range added {
			e.parts = insight.Add(e.parts, v)
		}
	}
	if err := t.readViews(ctx, late); err != nil {
		return err
	}
	return t.putProgress(ctx, all)
}

// readProgress returns the progress of the entries with the given ids, with an element for each id, sorted by id.
func (t numberedTx) readProgress(ctx context.Context, ids []string) (all []entryProgress, err error) {
	rows, err := t.tx.Query(ctx, partsOf, t.projectID, ids)
	if err != nil {
		return nil, err
	}
	var e entryProgress
	var p insight.Progress
	var part, furthest, first, latest *int64
	var several, ended *bool
	_, err = pgx.ForEachRow(rows, []any{&e.id, &e.embeddable, &e.created, &e.updated, &part, &p.Version, &several, &furthest, &ended,
		&p.CompletedAfter, (*[]byte)(&p.Cells), &first, &latest, &p.Waits}, func() error {
		if n := len(all); n == 0 || all[n-1].id != e.id {
			all = append(all, e)
		}
		if part != nil {
			p.Several, p.Furthest, p.Ended, p.First, p.Latest = *several, *furthest, *ended, *first, *latest
			last := &all[len(all)-1]
			last.parts = append(last.parts, p)
		}
		return nil
	})
	return all, err
}

// readViews adds all stored page views to the progress of the given entries, which must be empty before.
func (t numberedTx) readViews(ctx context.Context, of map[string]*entryProgress) error {
	if len(of) == 0 {
		return nil
	}
	rows, err := t.tx.Query(ctx, viewsOf, t.projectID, slices.Collect(maps.Keys(of)))
	if err != nil {
		return err
	}
	var id string
	var at time.Time
	var v insight.View
	_, err = pgx.ForEachRow(rows, []any{&id, &v.Version, &v.Page, &v.TotalPages, &at}, func() error {
		v.At = at.UnixMicro()
		of[id].parts = insight.Add(of[id].parts, v)
		return nil
	})
	return err
}

// putProgress stores the progress of entries, a row for each part. putProgress does not touch rows that are equal
// already.
func (t numberedTx) putProgress(ctx context.Context, all []entryProgress) error {
	type row struct {
		*entryProgress
		*insight.Progress
		part int64
	}
	var rows []row
	for i := range all {
		for n := range all[i].parts {
			rows = append(rows, row{&all[i], &all[i].parts[n], int64(n)})
		}
	}
	number := func(of func(*row) int64) []int64 { return insert.Column(rows, of) }
	numberOrNull := func(of func(*row) *int64) []*int64 { return insert.Column(rows, of) }
	_, err := t.put(ctx, progressPut,
		insert.Column(rows, func(r *row) string { return r.id }),
		number(func(r *row) int64 { return r.part }),
		numberOrNull(func(r *row) *int64 { return r.Version }),
		insert.Column(rows, func(r *row) bool { return r.Several }),
		insert.Column(rows, func(r *row) *string { return r.embeddable }),
		insert.Column(rows, func(r *row) *time.Time { return r.created }),
		insert.Column(rows, func(r *row) *time.Time { return r.updated }),
		number(func(r *row) int64 { return r.Furthest }),
		insert.Column(rows, func(r *row) bool { return r.Ended }),
		numberOrNull(func(r *row) *int64 { return r.CompletedAfter }),
		insert.Column(rows, func(r *row) []byte { return r.Cells }),
		number(func(r *row) int64 { return r.First }),
		number(func(r *row) int64 { return r.Latest }),
		numberOrNull(func(r *row) *int64 { return r.Waits }),
	)
	return err
}
