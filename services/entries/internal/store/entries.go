package store

import (
	"github.com/lectern-dev/lectern/shared/pagelist"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pgrecord"
	"github.com/lectern-dev/lectern/shared/wire"

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

// newEntryList reads the entries of l; lists of their page views read the same range.
func newEntryList(pool pgdb.Querier, l entry.List) *pgrecord.List {
	of := orderOf(l)
	row := entryRow{project: wire.AppendText(nil, []byte(l.ProjectID)), key: entry.ColumnUpdatedAt}
	var filters []any // by update they are the ends of the range
	if l.Sort == entry.ByCreatedAt {
		row.key = entry.ColumnCreatedAt
		filters = []any{pgdb.Timestamp(l.UpdatedAfter), pgdb.Timestamp(l.UpdatedBefore)}
	}
	return &pgrecord.List{
		Pool: pgdb.Pinned(pool),
		SQL:  pgrecord.Statements{Chunk: of.entries, Nth: of.nth, Last: of.last},
		Arguments: func(after, end pagelist.Position, own ...any) []any {
			args := make([]any, 0, 8)
			args = append(args, l.ProjectID, pgdb.Timestamp(after.Key), after.ID, pgdb.Timestamp(end.Key), end.ID)
			args = append(args, own...)
			return append(args, filters...)
		},
		Row: row,
		Position: func(raw *pgdb.Raw) pagelist.Position {
			return pagelist.Position{Key: raw.Micros(0), ID: string(raw.Text(1))}
		},
	}
}

// entryRow is a row that holds an entry.
type entryRow struct {
	project []byte // as a JSON string
	key     int    // the column of the sort key
}

func (e entryRow) Place(raw *pgdb.Raw) (key int64, id []byte, ok bool) {
	return raw.Micros(e.key), raw.Text(entry.ColumnEntryID), true
}

func (e entryRow) Append(dst []byte, raw *pgdb.Raw) []byte { return entry.Append(dst, e.project, raw) }
