package entry

import (
	"github.com/lectern-dev/lectern/shared/wire"
)

// Row is a record as it came from the database: borrowed bytes, valid until the next row. Ints are
// appended by the reader of the row, which knows their wire format.
type Row interface {
	Text(column int) []byte                  // nil for null
	Micros(column int) int64                 // of a timestamptz, Unix microseconds
	AppendInt(dst []byte, column int) []byte // a JSON number or null
}

// Columns of an entry's row, in the order in which the store selects them.
const (
	ColumnEntryID = iota
	ColumnGroupID
	ColumnEmbeddableID
	ColumnContactID
	ColumnCreatedAt
	ColumnUpdatedAt
	ColumnData // or the first column of a page view

	ColumnViewTimestamp = iota - 1
	ColumnViewArrival
	ColumnViewPageID
	ColumnViewPageKey
	ColumnViewPageIndex
	ColumnViewURL
)

// Columns of an event's row.
const (
	ColumnEventArrival = iota
	ColumnEventContactID
	ColumnEventGroupID
	ColumnEventEmbeddableID
	ColumnEventVersion
	ColumnEventTimestamp
	ColumnEventPageID
	ColumnEventPageKey
	ColumnEventPageIndex
	ColumnEventMaxPageID
	ColumnEventMaxPageKey
	ColumnEventMaxPageIndex
	ColumnEventTotalPages
	ColumnEventType
	ColumnEventViewType
	ColumnEventCustomName
	ColumnEventCustomProps
)

// Append appends the row as an Entry of the API. project is the project's id as a JSON string.
func Append(dst []byte, project []byte, row Row) []byte {
	dst = appendHead(dst, project, row)
	dst = append(dst, `,"entry_data":`...)
	dst = wire.AppendText(dst, row.Text(ColumnData))
	return append(dst, '}')
}

// AppendViewsHead appends the beginning of an EntryPageViews, up to its page views.
func AppendViewsHead(dst []byte, project []byte, row Row) []byte {
	return append(appendHead(dst, project, row), `,"page_views":[`...)
}

// AppendViewsTail appends the end of an EntryPageViews.
func AppendViewsTail(dst []byte) []byte { return append(dst, "]}"...) }

// AppendView appends a PageView whose columns begin at column first, with its URL if wanted.
func AppendView(dst []byte, row Row, first int, url bool) []byte {
	column := func(of int) int { return first + of - ColumnViewTimestamp }
	dst = append(dst, `{"timestamp":`...)
	dst = wire.AppendTime(dst, row.Micros(column(ColumnViewTimestamp)))
	dst = append(dst, `,"page_id":`...)
	dst = wire.AppendText(dst, row.Text(column(ColumnViewPageID)))
	dst = append(dst, `,"page_key":`...)
	dst = wire.AppendText(dst, row.Text(column(ColumnViewPageKey)))
	dst = append(dst, `,"page_index":`...)
	dst = row.AppendInt(dst, column(ColumnViewPageIndex))
	if url {
		dst = append(dst, `,"url":`...)
		dst = wire.AppendNullableText(dst, row.Text(column(ColumnViewURL)))
	}
	return append(dst, '}')
}

// AppendEvent appends the row as an EntryEvent of the API. project and entryID are JSON strings.
func AppendEvent(dst []byte, project, entryID []byte, row Row) []byte {
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
	text(`,"contact_id":`, ColumnEventContactID)
	dst = append(dst, `,"project_id":`...)
	dst = append(dst, project...)
	text(`,"group_id":`, ColumnEventGroupID)
	text(`,"embeddable_id":`, ColumnEventEmbeddableID)
	number(`,"embeddable_version_number":`, ColumnEventVersion)
	dst = append(dst, `,"timestamp":`...)
	dst = wire.AppendTime(dst, row.Micros(ColumnEventTimestamp))
	text(`,"page_id":`, ColumnEventPageID)
	text(`,"page_key":`, ColumnEventPageKey)
	number(`,"page_index":`, ColumnEventPageIndex)
	text(`,"max_page_id":`, ColumnEventMaxPageID)
	text(`,"max_page_key":`, ColumnEventMaxPageKey)
	number(`,"max_page_index":`, ColumnEventMaxPageIndex)
	number(`,"total_pages":`, ColumnEventTotalPages)
	text(`,"event_type":`, ColumnEventType)
	text(`,"view_type":`, ColumnEventViewType)
	text(`,"custom_event_name":`, ColumnEventCustomName)
	text(`,"custom_event_props":`, ColumnEventCustomProps)
	return append(dst, '}')
}

func appendHead(dst []byte, project []byte, row Row) []byte {
	dst = append(dst, `{"entry_id":`...)
	dst = wire.AppendText(dst, row.Text(ColumnEntryID))
	dst = append(dst, `,"group_id":`...)
	dst = wire.AppendText(dst, row.Text(ColumnGroupID))
	dst = append(dst, `,"project_id":`...)
	dst = append(dst, project...)
	dst = append(dst, `,"embeddable_id":`...)
	dst = wire.AppendText(dst, row.Text(ColumnEmbeddableID))
	dst = append(dst, `,"contact_id":`...)
	dst = wire.AppendText(dst, row.Text(ColumnContactID))
	dst = append(dst, `,"created_at":`...)
	dst = wire.AppendTime(dst, row.Micros(ColumnCreatedAt))
	dst = append(dst, `,"updated_at":`...)
	return wire.AppendTime(dst, row.Micros(ColumnUpdatedAt))
}
