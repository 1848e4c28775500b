package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/keyset"
	"github.com/lectern-dev/lectern/shared/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// orderOf gives the statements of a list's order.
func orderOf(l entry.List) order {
	switch {
	case l.Sort == entry.ByCreatedAt && l.Descending:
		return order{entriesByCreatedAtDescending, "", nthByCreatedAtDescending, lastByCreatedAtDescending}
	case l.Sort == entry.ByCreatedAt:
		return order{entriesByCreatedAtAscending, "", nthByCreatedAtAscending, lastByCreatedAtAscending}
	case l.Descending:
		return order{entriesByUpdatedAtDescending, pageViewsDescending, nthByUpdatedAtDescending, lastByUpdatedAtDescending}
	}
	return order{entriesByUpdatedAtAscending, pageViewsAscending, nthByUpdatedAtAscending, lastByUpdatedAtAscending}
}

// entryRange is what lists of entries and lists of their page views have in common: the order.
type entryRange struct {
	pool    *pgdb.Pool
	order   order
	project string
	quoted  []byte // project as a JSON string
	key     int    // the column of the sort key
	filters []any  // parameters behind the statement's own
}

func (s *Store) entryRange(l entry.List) entryRange {
	r := entryRange{
		pool: s.pool, order: orderOf(l), project: l.ProjectID, quoted: quoted(l.ProjectID), key: entry.ColumnUpdatedAt,
	}
	if l.Sort == entry.ByCreatedAt {
		// By update the filters are the ends of the range.
		r.key = entry.ColumnCreatedAt
		r.filters = []any{pgdb.Timestamp(l.UpdatedAfter), pgdb.Timestamp(l.UpdatedBefore)}
	}
	return r
}

// parameters gives a statement's: the range, its own, the filters.
func (r *entryRange) parameters(after, end keyset.Position, own ...any) []any {
	args := make([]any, 0, 8)
	args = append(args, r.project, pgdb.Timestamp(after.Key), after.ID, pgdb.Timestamp(end.Key), end.ID)
	args = append(args, own...)
	return append(args, r.filters...)
}

// Settle finds the end of a page in the index of the order.
func (r *entryRange) Settle(ctx context.Context, after, end keyset.Position, n int) (keyset.Position, bool, bool, error) {
	id := func(raw *pgdb.Raw) string { return string(raw.Text(1)) }
	last, found, more, err := settle(ctx, r.pool, id, r.order.nth, r.parameters(after, end, n-1))
	if err != nil || found {
		return last, found, more, err
	}
	last, found, _, err = settle(ctx, r.pool, id, r.order.last, r.parameters(after, end))
	return last, found, false, err
}

// settle runs a statement that selects a key and an id, for the position in its first row and whether
// there is a second.
func settle(ctx context.Context, pool *pgdb.Pool, id func(*pgdb.Raw) string, statement string, args []any) (first keyset.Position, found, more bool, err error) {
	err = pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for rows.Next() {
			if found {
				more = true
				continue
			}
			raw.Next(rows)
			first, found = keyset.Position{Key: raw.Micros(0), ID: id(&raw)}, true
		}
		return nil
	}, statement, args...)
	return first, found, more, err
}

type entrySource struct{ entryRange }

// Chunk reads entries.
func (s *entrySource) Chunk(ctx context.Context, sink *keyset.Sink, after, end keyset.Position, limit int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := false
	err := s.pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for n := 0; rows.Next(); n++ {
			raw.Next(rows)
			switch sink.Begin(raw.Micros(s.key), raw.Text(entry.ColumnEntryID)) {
			case keyset.Skip:
				continue
			case keyset.Stop:
				if left = long(n, limit, len(sink.Bytes())); left {
					cancel()
				}
				return nil
			}
			sink.SetBytes(entry.Append(sink.Bytes(), s.quoted, &raw))
			sink.End()
		}
		return nil
	}, s.order.entries, s.parameters(after, end, limit)...)
	return leave(err, left)
}
