package store

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pginsert"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// putWithoutViews gives each entry its row, and brings the entry's own columns in that row up to date.
const putWithoutViews = `
INSERT INTO progress AS p (project_id, entry_id, part, embeddable_id, created_at, updated_at, ended)
SELECT e.project_id, e.entry_id, 0, e.embeddable_id, e.created_at, e.updated_at, false
FROM entries e
WHERE e.project_id = $1 AND e.entry_id = ANY($2::text[])
ORDER BY e.entry_id
ON CONFLICT (project_id, entry_id, part) DO UPDATE
SET embeddable_id = excluded.embeddable_id, created_at = excluded.created_at, updated_at = excluded.updated_at
WHERE (excluded.embeddable_id, excluded.created_at, excluded.updated_at) IS DISTINCT FROM (p.embeddable_id, p.created_at, p.updated_at)`

// setEntryOfParts brings the entry's own columns up to date in the rows of versions.
const setEntryOfParts = `
UPDATE progress p
SET embeddable_id = e.embeddable_id, created_at = e.created_at, updated_at = e.updated_at
FROM entries e
WHERE p.project_id = $1 AND p.entry_id = ANY($2::text[]) AND p.part > 0
  AND e.project_id = $1 AND e.entry_id = p.entry_id
  AND (e.embeddable_id, e.created_at, e.updated_at) IS DISTINCT FROM (p.embeddable_id, p.created_at, p.updated_at)`

// viewedOf selects which of the given entries have page views.
const viewedOf = `
SELECT u.entry_id
FROM unnest($2::text[]) AS u (entry_id)
CROSS JOIN LATERAL (
    SELECT FROM events e WHERE e.project_id = $1 AND e.entry_id = u.entry_id AND e.event_type = 'flowpage.viewed' LIMIT 1
) e`

// viewsOf selects the page views of entries that exist. LATERAL keeps Postgres from passing over all events of a table that
// it does not know yet.
const viewsOf = `
SELECT e.entry_id, e.embeddable_id, e.created_at, e.updated_at, v.embeddable_version_number, v.page_index, v.total_pages, v."timestamp"
FROM entries e
CROSS JOIN LATERAL (
    SELECT v.embeddable_version_number, v.page_index, v.total_pages, v."timestamp", v.arrival
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival
    LIMIT 1000000000
) v
WHERE e.project_id = $1 AND e.entry_id = ANY($2::text[])
ORDER BY e.entry_id, v."timestamp", v.arrival`

const insertProgress = `
INSERT INTO progress AS p (project_id, entry_id, part, version, versions, embeddable_id, created_at, updated_at,
                           furthest, ended, completed_after, cells)`

const unlessSame = `
ON CONFLICT (project_id, entry_id, part) DO UPDATE
SET version = excluded.version, versions = excluded.versions, embeddable_id = excluded.embeddable_id,
    created_at = excluded.created_at, updated_at = excluded.updated_at, furthest = excluded.furthest,
    ended = excluded.ended, completed_after = excluded.completed_after, cells = excluded.cells
WHERE (excluded.version, excluded.versions, excluded.embeddable_id, excluded.created_at, excluded.updated_at,
       excluded.furthest, excluded.ended, excluded.completed_after, excluded.cells)
      IS DISTINCT FROM (p.version, p.versions, p.embeddable_id, p.created_at, p.updated_at,
       p.furthest, p.ended, p.completed_after, p.cells)
RETURNING 1`

// The arrays come as text, because an array of arrays of several lengths has no other form.
const putProgress = insertProgress + `
SELECT $1, u.entry_id, u.part, u.version, u.versions::bigint[], u.embeddable_id, u.created_at, u.updated_at,
       u.furthest, u.ended, u.completed_after, u.cells::bigint[]
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::timestamptz[], $8::timestamptz[],
            $9::bigint[], $10::boolean[], $11::bigint[], $12::text[])
     AS u (entry_id, part, version, versions, embeddable_id, created_at, updated_at, furthest, ended, completed_after, cells)
ORDER BY u.entry_id, u.part` + unlessSame

const putOneProgress = insertProgress + `
VALUES ($1, $2, $3, $4, $5::bigint[], $6, $7, $8, $9, $10, $11, $12::bigint[])` + unlessSame

var progressPut = pginsert.Put{Arrays: putProgress, Values: putOneProgress, Key: 2}

// progressRow is a row of the table progress.
type progressRow struct {
	entry entry.Entry
	insight.Progress
}

// followEntries brings progress up to date with stored entries. Some of them may be new, and some may have been there.
func (t numberedTx) followEntries(ctx context.Context, ids []string, fresh, replaced bool) error {
	if _, err := t.exec(ctx, putWithoutViews, ids); err != nil {
		return err
	}
	if replaced {
		if _, err := t.exec(ctx, setEntryOfParts, ids); err != nil {
			return err
		}
	}
	if !fresh {
		return nil
	}
	rows, err := t.tx.Query(ctx, viewedOf, t.projectID, ids)
	if err != nil {
		return err
	}
	viewed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	return t.followViews(ctx, viewed)
}

// followViews brings the progress of entries up to date with their page views.
func (t numberedTx) followViews(ctx context.Context, ids []string) error {
	slices.Sort(ids)
	for ids := range slices.Chunk(slices.Compact(ids), 1000) {
		all, err := t.readProgress(ctx, ids)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			continue
		}
		if _, err := t.put(ctx, progressPut, progressColumnsOf(all)...); err != nil {
			return err
		}
	}
	return nil
}

// readProgress computes the progress of entries from their page views.
func (t numberedTx) readProgress(ctx context.Context, ids []string) (all []progressRow, err error) {
	rows, err := t.tx.Query(ctx, viewsOf, t.projectID, ids)
	if err != nil {
		return nil, err
	}
	var e entry.Entry
	var views []insight.View
	end := func() {
		if e.EntryID == "" {
			return
		}
		for _, p := range insight.ProgressOf(views) {
			all = append(all, progressRow{e, p})
		}
		views = views[:0]
	}
	var id string
	var next entry.Entry
	var created, updated time.Time
	var at time.Time
	var v insight.View
	_, err = pgx.ForEachRow(rows, []any{&id, &next.EmbeddableID, &created, &updated, &v.Version, &v.Page, &v.TotalPages, &at}, func() error {
		if id != e.EntryID {
			end()
			e = entry.Entry{EntryID: id, EmbeddableID: next.EmbeddableID, CreatedAt: created.UnixMicro(), UpdatedAt: updated.UnixMicro()}
		}
		views = append(views, insight.View{Version: v.Version, Page: v.Page, TotalPages: v.TotalPages, At: at.UnixMicro()})
		return nil
	})
	end()
	return all, err
}

// progressColumnsOf returns the columns of rows in the order of insertProgress.
func progressColumnsOf(rows []progressRow) []any {
	text := func(of func(*progressRow) string) []string { return pginsert.Column(rows, of) }
	intOrNull := func(of func(*progressRow) *int64) []*int64 { return pginsert.Column(rows, of) }
	return []any{
		text(func(r *progressRow) string { return r.entry.EntryID }),
		pginsert.Column(rows, func(r *progressRow) int64 { return r.Part }),
		intOrNull(func(r *progressRow) *int64 { return r.Version }),
		pginsert.Column(rows, func(r *progressRow) *string { return arrayText(r.Versions) }),
		text(func(r *progressRow) string { return r.entry.EmbeddableID }),
		pginsert.Column(rows, func(r *progressRow) pgtype.Timestamptz { return pgdb.Timestamp(r.entry.CreatedAt) }),
		pginsert.Column(rows, func(r *progressRow) pgtype.Timestamptz { return pgdb.Timestamp(r.entry.UpdatedAt) }),
		pginsert.Column(rows, func(r *progressRow) int64 { return r.Furthest }),
		pginsert.Column(rows, func(r *progressRow) bool { return r.Ended }),
		intOrNull(func(r *progressRow) *int64 { return r.CompletedAfter }),
		pginsert.Column(rows, func(r *progressRow) *string { return arrayText(r.Cells) }),
	}
}

// arrayText returns an array as Postgres writes it, or nil for none.
func arrayText(list []int64) *string {
	if list == nil {
		return nil
	}
	b := []byte{'{'}
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	text := string(append(b, '}'))
	return &text
}
