package store

import (
	"strconv"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// eventColumns has the columns of an event. The constants below are the indexes of these columns.
const eventColumns = `arrival, contact_id, group_id, embeddable_id, embeddable_version_number, "timestamp",
       page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages,
       event_type, view_type, custom_event_name, custom_event_props`

const (
	columnEventArrival = iota
	columnEventContactID
	columnEventGroupID
	columnEventEmbeddableID
	columnEventVersion
	columnEventTimestamp

	columnEventPageID
	columnEventPageKey
	columnEventPageIndex
	columnEventMaxPageID
	columnEventMaxPageKey
	columnEventMaxPageIndex
	columnEventTotalPages

	columnEventType
	columnEventViewType
	columnEventCustomName
	columnEventCustomProps
)

// events has the statements that list the events of an entry, by timestamp and then by arrival number.
var events = lists.Keyset{
	Table: "events", Columns: eventColumns, Key: `"timestamp", arrival`,
	Where: "project_id = $1 AND entry_id = $2", Parameters: 2,
	Parent: "SELECT entry_id FROM entries WHERE project_id = $1 AND entry_id = $2",
}.Orders()

// eventQuery returns a lists.Query for the events of an entry. The query fails with an EntryNotFound if the
// project has no such entry.
func eventQuery(pool pgdb.Querier, projectID, entryID string, descending bool) *lists.Query {
	project, entryText := wire.AppendText(nil, []byte(projectID)), wire.AppendText(nil, []byte(entryID))
	var arrival []byte // as text, of the last row that was read
	return &lists.Query{
		Pool:  pgdb.Pinned(pool),
		SQL:   events.In(descending),
		List:  []any{projectID, entryID},
		Bound: func(p lists.Position) []any { return []any{pgdb.Timestamp(p.Key), entry.Arrival(p)} },
		Key: func(row *pgdb.Raw) (key int64, id []byte, ok bool) {
			if row.Null(columnEventArrival) {
				return 0, nil, false
			}
			arrival = strconv.AppendInt(arrival[:0], row.Int(columnEventArrival), 10)
			return row.Micros(columnEventTimestamp), arrival, true
		},
		Append: func(dst []byte, row *pgdb.Raw) []byte { return appendEvent(dst, project, entryText, row) },
		Position: func(row *pgdb.Raw) lists.Position {
			return lists.Position{Key: row.Micros(0), ID: strconv.FormatInt(row.Int(1), 10)}
		},
		Missing: apierr.NoEntry(entryID),
	}
}

// appendEvent appends an EntryEvent of the API in JSON to dst. project and entryID are JSON strings.
func appendEvent(dst, project, entryID []byte, row *pgdb.Raw) []byte {
	text := func(name string, column int) {
		dst = append(dst, name...)
		dst = wire.AppendNullableText(dst, row.Text(column))
	}
	number := func(name string, column int) {
		dst = append(dst, name...)
		dst = row.AppendInt(dst, column)
	}
	dst = append(dst, `{"entry_id":`...)
	dst = append(dst, entryID...)
	text(`,"contact_id":`, columnEventContactID)
	dst = append(dst, `,"project_id":`...)
	dst = append(dst, project...)
	text(`,"group_id":`, columnEventGroupID)
	text(`,"embeddable_id":`, columnEventEmbeddableID)
	number(`,"embeddable_version_number":`, columnEventVersion)
	dst = append(dst, `,"timestamp":`...)
	dst = wire.AppendTime(dst, row.Micros(columnEventTimestamp))
	text(`,"page_id":`, columnEventPageID)
	text(`,"page_key":`, columnEventPageKey)
	number(`,"page_index":`, columnEventPageIndex)
	text(`,"max_page_id":`, columnEventMaxPageID)
	text(`,"max_page_key":`, columnEventMaxPageKey)
	number(`,"max_page_index":`, columnEventMaxPageIndex)
	number(`,"total_pages":`, columnEventTotalPages)
	text(`,"event_type":`, columnEventType)
	text(`,"view_type":`, columnEventViewType)
	text(`,"custom_event_name":`, columnEventCustomName)
	text(`,"custom_event_props":`, columnEventCustomProps)
	return append(dst, '}')
}
