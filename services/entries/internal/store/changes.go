package store

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
)

// The indexes of columns in a row of the change feed, which reads the tables entries, events and removals as one
// list, by number. The columns are the number, the type, the columns of an entry, the columns of an event, and the
// columns that only the feed has. The columns of the other types are null.
const (
	columnSeq = iota
	columnType
	firstEntryColumn
	firstEventColumn = firstEntryColumn + columnData + 1
	firstOwnColumn   = firstEventColumn + columnEventCustomProps + 1
)

// The indexes of the columns that only the feed has, counted from firstOwnColumn.
const (
	columnChanged = iota // the entry of an event or a removal
	columnChangeEventID
	columnChangeURL
	columnChangeKey
	columnChangeRemovedAt
	columnChangeReason
)

// Lists of null columns, which fill the columns of the other types in a row. Each null has the type of the column in
// its table.
const (
	noEntry = `NULL::text AS entry_id, NULL::text AS group_id, NULL::text AS embeddable_id, NULL::text AS contact_id,
       NULL::timestamptz AS created_at, NULL::timestamptz AS updated_at, NULL::text AS entry_data`
	noEvent = `NULL::bigint AS arrival, NULL::text AS contact_id, NULL::text AS group_id, NULL::text AS embeddable_id,
       NULL::bigint AS embeddable_version_number, NULL::timestamptz AS "timestamp",
       NULL::text AS page_id, NULL::text AS page_key, NULL::bigint AS page_index, NULL::text AS max_page_id,
       NULL::text AS max_page_key, NULL::bigint AS max_page_index, NULL::bigint AS total_pages,
       NULL::text AS event_type, NULL::text AS view_type, NULL::text AS custom_event_name, NULL::text AS custom_event_props`
	noFurther = `NULL::text AS event_id, NULL::text AS url, NULL::bytea AS event_key`
	noRemoval = `NULL::timestamptz AS removed_at, NULL::text AS reason`
)

// Queries for the changes of each type whose number is in a range. The statements of the feed join these queries by
// UNION ALL. Postgres merges the tables by their indexes on seq.
const (
	inRange = `
WHERE project_id = $1 AND seq > $2 AND seq <= $3`

	entryChanges = `SELECT seq, 1::bigint AS type, ` + entryColumns + `,
       ` + noEvent + `,
       NULL::text AS changed, ` + noFurther + `, ` + noRemoval + `
FROM entries` + inRange

	eventChanges = `SELECT seq, 2::bigint AS type, ` + noEntry + `,
       ` + eventColumns + `,
       entry_id AS changed, event_id, url, event_key, ` + noRemoval + `
FROM events` + inRange

	removalChanges = `SELECT seq, 4::bigint AS type, ` + noEntry + `,
       ` + noEvent + `,
       entry_id AS changed, ` + noFurther + `, removed_at, reason
FROM removals` + inRange

	entryNumbers   = `SELECT seq FROM entries` + inRange
	eventNumbers   = `SELECT seq FROM events` + inRange
	removalNumbers = `SELECT seq FROM removals` + inRange
)

// changes has the statements of the change feed for each set of types.
var changes = func() map[change.Types]lists.Statements {
	all := map[change.Types]lists.Statements{}
	for types := change.Types(1); types <= change.All; types++ {
		all[types] = changeStatements(types)
	}
	return all
}()

// changeStatements returns the statements of the change feed for a set of types. The parameters are the project, the
// last number that the reader has, the last number to read, and the limit or the offset.
func changeStatements(types change.Types) lists.Statements {
	var rows, numbers []string
	for _, c := range []struct {
		of            change.Types
		rows, numbers string
	}{
		{change.Entry, entryChanges, entryNumbers},
		{change.Event, eventChanges, eventNumbers},
		{change.Removal, removalChanges, removalNumbers},
	} {
		if types&c.of != 0 {
			rows, numbers = append(rows, c.rows), append(numbers, c.numbers)
		}
	}
	const order = "\nORDER BY seq"
	return lists.Statements{
		Chunk: merged(rows, order, " LIMIT $4", " LIMIT $4"),
		Nth:   merged(numbers, order, " LIMIT $4::bigint + 2", " OFFSET $4 LIMIT 2"),
		Last:  merged(numbers, order+" DESC", " LIMIT 1", " LIMIT 1"),
	}
}

// merged joins queries that have the same order into one query in that order. each is the limit of a single query, and
// all is the limit of their union. Without each, Postgres would sort the rest of the feed for every chunk, because it
// expects few rows in a range of unknown numbers.
func merged(queries []string, order, each, all string) string {
	if len(queries) == 1 {
		return queries[0] + order + all
	}
	return "(" + strings.Join(queries, order+each+")\nUNION ALL\n(") + order + each + ")" + order + all
}

// lastSeq selects the number of a project's newest change. A project without changes has no row.
const lastSeq = `
SELECT last_seq
FROM project_changes
WHERE project_id = $1`

// positionOf selects the number of a project's newest change, and whether the server is a standby. If stretches of lost
// numbers end after the position $2, positionOf also selects the first of them. A project without changes has no row.
const positionOf = `
SELECT c.last_seq, pg_is_in_recovery(), l.after, l.until
FROM project_changes c
LEFT JOIN lost_numbers l ON l.project_id = $1 AND l.until > $2
WHERE c.project_id = $1
ORDER BY l.after
LIMIT 1`

// lostAround selects the end of a stretch of lost numbers that the position $2 is in. Without such a stretch there is no row.
const lostAround = `
SELECT until
FROM lost_numbers
WHERE project_id = $1 AND after < $2 AND until > $2
ORDER BY until DESC
LIMIT 1`

// LastSeq reads the number of the project's newest change from the primary. The number is 0 for a project without
// changes.
func (s *Store) LastSeq(ctx context.Context, projectID string) (int64, error) {
	return newest(ctx, s.primary, projectID)
}

// newest reads the number of the project's newest change from pool. The number is 0 for a project without changes.
func newest(ctx context.Context, pool pgdb.Querier, projectID string) (last int64, err error) {
	err = pool.Query(ctx, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&last); err != nil {
				return err
			}
		}
		return nil
	}, lastSeq, projectID)
	return last, err
}

// newestFor reads the number of the project's newest change from the primary, for a reader that has the changes up to
// the number after. ahead reports that lost numbers follow that number. The error is a HistoryLost if the project has
// lost that number. In a project without changes, all numbers are 0 and none is lost.
func (s *Store) newestFor(ctx context.Context, projectID string, after int64) (last int64, ahead bool, err error) {
	var standby bool
	var lostAfter, lostUntil *int64
	err = s.primary.Query(ctx, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&last, &standby, &lostAfter, &lostUntil); err != nil {
				return err
			}
		}
		return nil
	}, positionOf, projectID, after)
	switch {
	case err != nil || last == 0:
		return 0, false, err
	case lostAfter != nil && *lostAfter < after:
		return 0, false, apierr.LostHistory(*lostAfter, lostUntil)
	case after > last && standby:
		return 0, false, apierr.NotAvailable(errBehind)
	case after > last:
		return 0, false, apierr.LostHistory(last, nil)
	}
	return last, lostAfter != nil, nil
}

// soundFrom returns the first number from position on that the project has not lost.
func (s *Store) soundFrom(ctx context.Context, projectID string, position int64) (int64, error) {
	for {
		before := position
		err := s.primary.Query(ctx, func(rows pgx.Rows) error {
			for rows.Next() {
				if err := rows.Scan(&position); err != nil {
					return err
				}
			}
			return nil
		}, lostAround, projectID, position)
		if err != nil || position == before {
			return position, err
		}
	}
}

// errBehind is the cause of a 503 while the database of the primary is a standby, which may not have all changes yet.
var errBehind = errors.New("DATABASE_URL leads to a standby, which is behind the reader")

// Changes opens a page of a project's change feed. Changes reads the newest number first, and the page has no change
// after that number. All statements run on the primary. With a standby that lags, a reader would believe that it has
// all changes. The error is a HistoryLost if the project has lost the number ask.After.
func (s *Store) Changes(ctx context.Context, ask change.Ask) (*change.Page, error) {
	last, ahead, err := s.newestFor(ctx, ask.ProjectID, ask.After)
	if err != nil {
		return nil, err
	}
	end := last
	if last == 0 {
		end = ask.After
	}
	open := func(end int64, limit int) (*lists.List, error) {
		return lists.Open(ctx, changeQuery(s.primary, ask.ProjectID, ask.Types), lists.Page{
			After: lists.Position{Key: ask.After}, End: lists.Position{Key: end}, Format: ask.Format, Limit: limit,
		})
	}
	// A project has at most one change for each number. A reader that is nearly current gets a small page, which waits for
	// no turn.
	list, err := open(end, int(min(int64(ask.Limit), max(end-ask.After, 1))))
	if err != nil {
		return nil, err
	}
	next := list.Next()
	if next == nil {
		return &change.Page{List: list, Last: last, Examined: end}, nil
	}
	examined := next.Key
	if ahead {
		// An administrator may have said that numbers are lost whose changes are still there. A page never ends among
		// these: its reader would be sent back for ever.
		if examined, err = s.soundFrom(ctx, ask.ProjectID, next.Key); err != nil || examined > next.Key {
			list.Close()
		}
		if err == nil && examined > next.Key {
			list, err = open(examined, lists.All)
		}
		if err != nil {
			return nil, err
		}
	}
	return &change.Page{List: list, Last: last, Examined: examined, More: examined < last}, nil
}

// changeQuery returns a lists.Query for the changes of a project that have one of the types, by number.
func changeQuery(pool pgdb.Querier, projectID string, types change.Types) *lists.Query {
	project := wire.AppendText(nil, []byte(projectID))
	return &lists.Query{
		Pool:     pool,
		SQL:      changes[types],
		List:     []any{projectID},
		Bound:    func(p lists.Position) []any { return []any{p.Key} },
		Key:      func(row *pgdb.Raw) (key int64, id []byte, ok bool) { return row.Int(columnSeq), nil, true },
		Append:   func(dst []byte, row *pgdb.Raw) []byte { return appendChange(dst, project, row) },
		Position: func(row *pgdb.Raw) lists.Position { return lists.Position{Key: row.Int(0)} },
	}
}

// appendChange appends a row of the change feed to dst, as a Change of the API. project is the id of the project as a
// JSON string.
func appendChange(dst, project []byte, row *pgdb.Raw) []byte {
	begin := func(name string) {
		dst = append(dst, `{"change":"`...)
		dst = append(dst, name...)
		dst = append(dst, `","seq":`...)
		dst = row.AppendInt(dst, columnSeq)
	}
	own := row.From(firstOwnColumn)
	kind := change.Types(row.Int(columnType))
	begin(kind.String())
	switch kind {
	case change.Entry:
		entry := row.From(firstEntryColumn)
		dst = append(dst, `,"entry":`...)
		dst = appendEntry(dst, project, &entry)
	case change.Event:
		event := row.From(firstEventColumn)
		dst = append(dst, `,"event":`...)
		dst = appendEvent(dst, project, wire.AppendText(nil, own.Text(columnChanged)), &event)
		dst = append(dst[:len(dst)-1], `,"event_id":`...) // before the event's last brace
		dst = wire.AppendNullableText(dst, own.Text(columnChangeEventID))
		dst = append(dst, `,"url":`...)
		dst = wire.AppendNullableText(dst, own.Text(columnChangeURL))
		dst = append(dst, `,"event_key":"`...)
		dst = own.AppendHex(dst, columnChangeKey)
		dst = append(dst, `"}`...)
	case change.Removal:
		dst = append(dst, `,"entry_id":`...)
		dst = wire.AppendText(dst, own.Text(columnChanged))
		dst = append(dst, `,"removed_at":`...)
		dst = wire.AppendTime(dst, own.Micros(columnChangeRemovedAt))
		dst = append(dst, `,"reason":`...)
		dst = wire.AppendText(dst, own.Text(columnChangeReason))
	}
	return append(dst, '}')
}
