package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pgrecord"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// Writer stores what comes in, with a pool whose role may write.
type Writer struct {
	pool *pgdb.Pool
}

// NewWriter returns a Writer to pool, whose role needs SELECT, INSERT and UPDATE.
func NewWriter(pool *pgdb.Pool) *Writer { return &Writer{pool: pool} }

var (
	entriesPut = pgrecord.Put{Arrays: putEntries, Values: putEntry, Key: 1}
	eventsPut  = pgrecord.Put{Arrays: putEvents, Values: putEvent}
)

// PutEntries stores entries of one project in one transaction and tells how many changed what was
// stored. It has the outcome of storing them one after the other. It may be repeated.
func (w *Writer) PutEntries(ctx context.Context, projectID string, entries []entry.Entry) (stored int, err error) {
	waves := pgrecord.Waves(entries, func(e *entry.Entry) string { return e.EntryID })
	if len(waves) == 1 {
		return entriesPut.Stored(ctx, w.pool, projectID, entryColumnsOf(entries)...)
	}
	err = w.pool.InProjectTx(ctx, projectID, func(ctx context.Context, tx pgx.Tx) error {
		stored = 0
		for _, wave := range waves {
			n, err := entriesPut.StoredIn(ctx, w.pool, tx, projectID, entryColumnsOf(wave)...)
			if err != nil {
				return err
			}
			stored += n
		}
		return nil
	})
	return stored, err
}

func entryColumnsOf(entries []entry.Entry) []any {
	text := func(of func(*entry.Entry) string) []string { return pgrecord.Column(entries, of) }
	return []any{
		text(func(e *entry.Entry) string { return e.EntryID }),
		text(func(e *entry.Entry) string { return e.GroupID }),
		text(func(e *entry.Entry) string { return e.EmbeddableID }),
		text(func(e *entry.Entry) string { return e.ContactID }),
		pgrecord.Column(entries, func(e *entry.Entry) pgtype.Timestamptz { return pgdb.Timestamp(e.CreatedAt) }),
		pgrecord.Column(entries, func(e *entry.Entry) pgtype.Timestamptz { return pgdb.Timestamp(e.UpdatedAt) }),
		text(func(e *entry.Entry) string { return e.Data }),
	}
}

// PutEvents stores events of one project in one transaction and tells how many were new. It may be
// repeated.
func (w *Writer) PutEvents(ctx context.Context, projectID string, events []entry.Event) (stored int, err error) {
	return eventsPut.Stored(ctx, w.pool, projectID, eventColumnsOf(events)...)
}

func eventColumnsOf(events []entry.Event) []any {
	text := func(of func(*entry.Event) string) []string { return pgrecord.Column(events, of) }
	textOrNull := func(of func(*entry.Event) *string) []*string { return pgrecord.Column(events, of) }
	intOrNull := func(of func(*entry.Event) *int64) []*int64 { return pgrecord.Column(events, of) }
	return []any{
		pgrecord.Column(events, func(e *entry.Event) []byte { key := e.Key(); return key[:] }),
		text(func(e *entry.Event) string { return e.EntryID }),
		text(func(e *entry.Event) string { return e.ContactID }),
		text(func(e *entry.Event) string { return e.GroupID }),
		text(func(e *entry.Event) string { return e.EmbeddableID }),
		intOrNull(func(e *entry.Event) *int64 { return e.Version }),
		pgrecord.Column(events, func(e *entry.Event) pgtype.Timestamptz { return pgdb.Timestamp(e.Timestamp) }),
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
