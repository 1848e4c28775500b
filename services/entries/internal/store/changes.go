package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/http/pagelist"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
)

// The feed reads three tables as one list: entries, events and removals, by number. The columns of a change are its
// number, its type, those of an entry, those of an event, and those that only the feed has. A change has null in all
// columns of the other types.
const (
	columnSeq = iota
	columnType
	firstEntryColumn
	firstEventColumn = firstEntryColumn + columnData + 1
	firstOwnColumn   = firstEventColumn + columnEventCustomProps + 1
)

// The columns that only the feed has, counted from firstOwnColumn.
const (
	columnChanged = iota // the entry of an event or a removal
	columnChangeEventID
	columnChangeURL
	columnChangeKey
	columnChangeRemovedAt
	columnChangeReason
)

// Null columns, with the types of the tables' columns.
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

// The changes of each type in a range of numbers. The statements of the feed join them by UNION ALL; Postgres merges
// the tables by their indexes on seq.
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

// changes are the statements of the feed for each set of types.
var changes = func() map[change.Types]pagelist.Statements {
	all := map[change.Types]pagelist.Statements{}
	for types := change.Types(1); types <= change.All; types++ {
		all[types] = changeStatements(types)
	}
	return all
}()

// changeStatements returns the statements for a set of types. Their parameters are the project, the last number that
// the reader has, and the last number to read. Then comes the limit or the offset.
func changeStatements(types change.Types) pagelist.Statements {
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
	return pagelist.Statements{
		Chunk: merged(rows, order, " LIMIT $4", " LIMIT $4"),
		Nth:   merged(numbers, order, " LIMIT $4::bigint + 2", " OFFSET $4 LIMIT 2"),
		Last:  merged(numbers, order+" DESC", " LIMIT 1", " LIMIT 1"),
	}
}

// merged joins queries, each in the same order, to one in that order. each bounds a single query, and all bounds
// their union. Without a bound for each query, Postgres would sort the rest of the feed for every chunk. It expects
// few rows in a range of unknown numbers.
func merged(queries []string, order, each, all string) string {
	if len(queries) == 1 {
		return queries[0] + order + all
	}
	return "(" + strings.Join(queries, order+each+")\nUNION ALL\n(") + order + each + ")" + order + all
}

// lastSeq selects the newest number of a project.
const lastSeq = `
SELECT last_seq
FROM project_changes
WHERE project_id = $1`

// LastSeq reads the newest number of a project from the primary. It is 0 for a project without changes.
func (s *Store) LastSeq(ctx context.Context, projectID string) (int64, error) {
	return newest(ctx, s.primary, projectID)
}

// newest reads the newest number of a project that a database has.
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

// Changes opens a page of a project's feed. It reads the newest number first and delivers nothing beyond it. All its
// statements run on the primary: a standby that lags would make a reader believe that it is current.
func (s *Store) Changes(ctx context.Context, ask change.Ask) (*change.Page, error) {
	last, err := s.LastSeq(ctx, ask.ProjectID)
	if err != nil {
		return nil, err
	}
	end := max(last, ask.After) // after a failover, the primary may be behind the reader
	list, err := pagelist.Open(ctx, changeQuery(s.primary, ask.ProjectID, ask.Types), pagelist.Page{
		After: pagelist.Position{Key: ask.After}, End: pagelist.Position{Key: end}, Format: ask.Format,
		// No more changes than numbers are left. A follower that is nearly current reads a small page, which takes no turn.
		Limit: int(min(int64(ask.Limit), max(end-ask.After, 1))),
	})
	if err != nil {
		return nil, err
	}
	page := &change.Page{List: list, Last: last, Examined: end}
	if next := list.Next(); next != nil {
		page.Examined, page.More = next.Key, true
	}
	return page, nil
}

// changeQuery reads the changes of a project.
func changeQuery(pool pgdb.Querier, projectID string, types change.Types) *pagelist.Query {
	project := wire.AppendText(nil, []byte(projectID))
	return &pagelist.Query{
		Pool:     pool,
		SQL:      changes[types],
		List:     []any{projectID},
		Bound:    func(p pagelist.Position) []any { return []any{p.Key} },
		Key:      func(row *pgdb.Raw) (key int64, id []byte, ok bool) { return row.Int(columnSeq), nil, true },
		Append:   func(dst []byte, row *pgdb.Raw) []byte { return appendChange(dst, project, row) },
		Position: func(row *pgdb.Raw) pagelist.Position { return pagelist.Position{Key: row.Int(0)} },
	}
}

// appendChange appends a Change of the API.
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
