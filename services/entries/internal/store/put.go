package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/shared/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// Writer stores what comes in, with a pool whose role may write.
type Writer struct {
	pool *pgdb.Pool
}

// NewWriter returns a Writer to pool, whose role needs SELECT, INSERT and UPDATE.
func NewWriter(pool *pgdb.Pool) *Writer { return &Writer{pool: pool} }

// PutEntries stores entries of one project in one transaction and tells how many changed what was
// stored. It has the outcome of storing them one after the other. It may be repeated.
func (w *Writer) PutEntries(ctx context.Context, projectID string, entries []entry.Entry) (stored int, err error) {
	waves := inWaves(entries)
	if len(waves) == 1 {
		tag, err := w.pool.Exec(ctx, putEntries, entryArguments(projectID, entries)...)
		return int(tag.RowsAffected()), err
	}
	err = w.pool.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		stored = 0
		for _, wave := range waves {
			tag, err := tx.Exec(ctx, putEntries, entryArguments(projectID, wave)...)
			if err != nil {
				return err
			}
			stored += int(tag.RowsAffected())
		}
		return nil
	})
	return stored, err
}

// inWaves parts entries so that none comes twice in a part: a statement can write a row once only.
func inWaves(entries []entry.Entry) [][]entry.Entry {
	times := make(map[string]int, len(entries))
	most := 0
	for i := range entries {
		n := times[entries[i].EntryID]
		times[entries[i].EntryID] = n + 1
		most = max(most, n)
	}
	if most == 0 {
		return [][]entry.Entry{entries}
	}
	waves := make([][]entry.Entry, most+1)
	clear(times)
	for i := range entries {
		n := times[entries[i].EntryID]
		times[entries[i].EntryID] = n + 1
		waves[n] = append(waves[n], entries[i])
	}
	return waves
}

func entryArguments(projectID string, entries []entry.Entry) []any {
	n := len(entries)
	ids, groups, embeddables := make([]string, n), make([]string, n), make([]string, n)
	contacts, data := make([]string, n), make([]string, n)
	created, updated := make([]pgtype.Timestamptz, n), make([]pgtype.Timestamptz, n)
	for i := range entries {
		e := &entries[i]
		ids[i], groups[i], embeddables[i], contacts[i], data[i] = e.EntryID, e.GroupID, e.EmbeddableID, e.ContactID, e.Data
		created[i], updated[i] = pgdb.Timestamp(e.CreatedAt), pgdb.Timestamp(e.UpdatedAt)
	}
	return []any{projectID, ids, groups, embeddables, contacts, created, updated, data}
}

// PutEvents stores events of one project in one transaction and tells how many were new. It may be
// repeated.
func (w *Writer) PutEvents(ctx context.Context, projectID string, events []entry.Event) (stored int, err error) {
	tag, err := w.pool.Exec(ctx, putEvents, eventArguments(projectID, events)...)
	return int(tag.RowsAffected()), err
}

func eventArguments(projectID string, events []entry.Event) []any {
	n := len(events)
	keys := make([][]byte, n)
	times := make([]pgtype.Timestamptz, n)
	text := func(of func(*entry.Event) string) []string {
		column := make([]string, n)
		for i := range events {
			column[i] = of(&events[i])
		}
		return column
	}
	textOrNull := func(of func(*entry.Event) *string) []*string {
		column := make([]*string, n)
		for i := range events {
			column[i] = of(&events[i])
		}
		return column
	}
	intOrNull := func(of func(*entry.Event) *int64) []*int64 {
		column := make([]*int64, n)
		for i := range events {
			column[i] = of(&events[i])
		}
		return column
	}
	for i := range events {
		key := events[i].Key()
		keys[i], times[i] = key[:], pgdb.Timestamp(events[i].Timestamp)
	}
	return []any{
		projectID, keys,
		text(func(e *entry.Event) string { return e.EntryID }),
		text(func(e *entry.Event) string { return e.ContactID }),
		text(func(e *entry.Event) string { return e.GroupID }),
		text(func(e *entry.Event) string { return e.EmbeddableID }),
		intOrNull(func(e *entry.Event) *int64 { return e.Version }),
		times,
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
	}
}
