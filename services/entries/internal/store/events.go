package store

import (
	"strconv"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/pagelist"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pgrecord"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// newEventList reads an entry's events.
func newEventList(pool pgdb.Querier, projectID, entryID string, descending bool) *pgrecord.List {
	sql := pgrecord.Statements{First: firstEventsAscending, Chunk: eventsAscending, Nth: nthEventAscending, Last: lastEventAscending}
	if descending {
		sql = pgrecord.Statements{First: firstEventsDescending, Chunk: eventsDescending, Nth: nthEventDescending, Last: lastEventDescending}
	}
	return &pgrecord.List{
		Pool: pgdb.Pinned(pool),
		SQL:  sql,
		Arguments: func(after, end pagelist.Position, own ...any) []any {
			args := make([]any, 0, 7)
			args = append(args, projectID, entryID,
				pgdb.Timestamp(after.Key), entry.Arrival(after), pgdb.Timestamp(end.Key), entry.Arrival(end))
			return append(args, own...)
		},
		Row: &eventRow{
			project: wire.AppendText(nil, []byte(projectID)), entry: wire.AppendText(nil, []byte(entryID)),
		},
		Position: func(raw *pgdb.Raw) pagelist.Position {
			return pagelist.Position{Key: raw.Micros(0), ID: strconv.FormatInt(raw.Int(1), 10)}
		},
		Missing: apierr.NoEntry(entryID),
	}
}

// eventRow is a row that holds an event, or nothing where the entry has none.
type eventRow struct {
	project, entry []byte // as JSON strings
	arrival        []byte
}

func (e *eventRow) Place(raw *pgdb.Raw) (key int64, id []byte, ok bool) {
	if raw.Null(entry.ColumnEventArrival) {
		return 0, nil, false
	}
	e.arrival = strconv.AppendInt(e.arrival[:0], raw.Int(entry.ColumnEventArrival), 10)
	return raw.Micros(entry.ColumnEventTimestamp), e.arrival, true
}

func (e *eventRow) Append(dst []byte, raw *pgdb.Raw) []byte {
	return entry.AppendEvent(dst, e.project, e.entry, raw)
}
