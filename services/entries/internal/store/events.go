package store

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/keyset"
	"github.com/lectern-dev/lectern/shared/pgdb"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// eventSource reads an entry's events. Its first statement also tells whether there is such an entry.
type eventSource struct {
	pool          *pgdb.Pool
	project       string
	entry         string
	quotedProject []byte
	quotedEntry   []byte
	found         bool
	statements    eventOrder
}

// eventOrder holds the statements of one order of events. Their parameters: project, entry, start of
// the range (timestamp, arrival; not included), its end (included), then limit or offset.
type eventOrder struct{ first, chunk, nth, last string }

func newEventSource(pool *pgdb.Pool, projectID, entryID string, descending bool) *eventSource {
	s := &eventSource{
		pool: pool, project: projectID, entry: entryID,
		quotedProject: quoted(projectID), quotedEntry: quoted(entryID),
		statements: eventOrder{firstEventsAscending, eventsAscending, nthEventAscending, lastEventAscending},
	}
	if descending {
		s.statements = eventOrder{firstEventsDescending, eventsDescending, nthEventDescending, lastEventDescending}
	}
	return s
}

func (s *eventSource) parameters(after, end keyset.Position, own ...any) []any {
	args := make([]any, 0, 7)
	args = append(args, s.project, s.entry,
		pgdb.Timestamp(after.Key), entry.Arrival(after), pgdb.Timestamp(end.Key), entry.Arrival(end))
	return append(args, own...)
}

// Chunk reads events.
func (s *eventSource) Chunk(ctx context.Context, sink *keyset.Sink, after, end keyset.Position, limit int) error {
	statement, known := s.statements.chunk, s.found
	if !known {
		statement = s.statements.first
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := false
	err := s.pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		var arrival []byte
		for n := 0; rows.Next(); n++ {
			raw.Next(rows)
			s.found = true
			if !known && raw.Null(entry.ColumnEventArrival) {
				return nil // the entry is there and has no event in the range
			}
			arrival = strconv.AppendInt(arrival[:0], raw.Int(entry.ColumnEventArrival), 10)
			if sink.Begin(raw.Micros(entry.ColumnEventTimestamp), arrival) == keyset.Stop {
				if left = long(n, limit, len(sink.Bytes())); left {
					cancel()
				}
				return nil
			}
			sink.SetBytes(entry.AppendEvent(sink.Bytes(), s.quotedProject, s.quotedEntry, &raw))
			sink.End()
		}
		return nil
	}, statement, s.parameters(after, end, limit)...)
	if err = leave(err, left); err == nil && !s.found {
		err = apierr.NoEntry(s.entry)
	}
	return err
}

// Settle finds the end of a page in the index of the entry's events.
func (s *eventSource) Settle(ctx context.Context, after, end keyset.Position, n int) (keyset.Position, bool, bool, error) {
	id := func(raw *pgdb.Raw) string { return strconv.FormatInt(raw.Int(1), 10) }
	last, found, more, err := settle(ctx, s.pool, id, s.statements.nth, s.parameters(after, end, n-1))
	if err != nil || found {
		return last, found, more, err
	}
	last, found, _, err = settle(ctx, s.pool, id, s.statements.last, s.parameters(after, end))
	return last, found, false, err
}
