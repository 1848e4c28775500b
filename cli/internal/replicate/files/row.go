package files

import (
	"time"

	"github.com/lectern-dev/lectern/client"
)

// entryRow is a change of an entry: its state from seq on, or its removal, which has neither state nor data.
type entryRow struct {
	Seq           int64   `parquet:"seq"`
	Removed       bool    `parquet:"removed"`
	RemovedAt     *int64  `parquet:"removed_at,optional,timestamp(microsecond:utc)"`
	RemovalReason *string `parquet:"removal_reason,optional,dict"`
	EntryID       string  `parquet:"entry_id"`
	GroupID       *string `parquet:"group_id,optional,dict"`
	ProjectID     *string `parquet:"project_id,optional,dict"`
	EmbeddableID  *string `parquet:"embeddable_id,optional,dict"`
	ContactID     *string `parquet:"contact_id,optional"`
	CreatedAt     *int64  `parquet:"created_at,optional,timestamp(microsecond:utc)"`
	UpdatedAt     *int64  `parquet:"updated_at,optional,timestamp(microsecond:utc)"`
	EntryData     *string `parquet:"entry_data,optional"`
}

// eventRow is an event, or the removal of all events of an entry with smaller numbers, which has no event_key.
type eventRow struct {
	Seq                     int64   `parquet:"seq"`
	Removed                 bool    `parquet:"removed"`
	RemovedAt               *int64  `parquet:"removed_at,optional,timestamp(microsecond:utc)"`
	RemovalReason           *string `parquet:"removal_reason,optional,dict"`
	EventKey                *string `parquet:"event_key,optional"`
	EventID                 *string `parquet:"event_id,optional"`
	EntryID                 string  `parquet:"entry_id"`
	ContactID               *string `parquet:"contact_id,optional"`
	ProjectID               *string `parquet:"project_id,optional,dict"`
	GroupID                 *string `parquet:"group_id,optional,dict"`
	EmbeddableID            *string `parquet:"embeddable_id,optional,dict"`
	EmbeddableVersionNumber *int64  `parquet:"embeddable_version_number,optional"`
	Timestamp               *int64  `parquet:"timestamp,optional,timestamp(microsecond:utc)"`
	PageID                  *string `parquet:"page_id,optional,dict"`
	PageKey                 *string `parquet:"page_key,optional,dict"`
	PageIndex               *int64  `parquet:"page_index,optional"`
	MaxPageID               *string `parquet:"max_page_id,optional,dict"`
	MaxPageKey              *string `parquet:"max_page_key,optional,dict"`
	MaxPageIndex            *int64  `parquet:"max_page_index,optional"`
	TotalPages              *int64  `parquet:"total_pages,optional"`
	EventType               *string `parquet:"event_type,optional,dict"`
	ViewType                *string `parquet:"view_type,optional,dict"`
	CustomEventName         *string `parquet:"custom_event_name,optional,dict"`
	CustomEventProps        *string `parquet:"custom_event_props,optional"`
	URL                     *string `parquet:"url,optional,dict"`
}

// row is a row of either kind.
type row interface {
	entryRow | eventRow
	// seq returns the number of the change.
	seq() int64
	// data returns the entry_data of the row, or nil.
	data() *string
}

func (r entryRow) seq() int64    { return r.Seq }
func (r entryRow) data() *string { return r.EntryData }
func (r eventRow) seq() int64    { return r.Seq }
func (eventRow) data() *string   { return nil }

func micros(t time.Time) *int64 { return new(t.UnixMicro()) }

// rowsOf returns the rows of changes. A removal is a row of both kinds.
func rowsOf(changes []client.Change) (entries []entryRow, events []eventRow) {
	for i := range changes {
		switch c := &changes[i]; c.Type {
		case client.EntryChanged:
			e := c.Entry
			entries = append(entries, entryRow{
				Seq: c.Seq, EntryID: e.EntryID, GroupID: &e.GroupID, ProjectID: &e.ProjectID, EmbeddableID: &e.EmbeddableID,
				ContactID: &e.ContactID, CreatedAt: micros(e.CreatedAt), UpdatedAt: micros(e.UpdatedAt), EntryData: &e.Data,
			})
		case client.EventAdded:
			e := c.Event
			events = append(events, eventRow{
				Seq: c.Seq, EventKey: &e.EventKey, EventID: e.EventID, EntryID: e.EntryID, ContactID: &e.ContactID, ProjectID: &e.ProjectID,
				GroupID: &e.GroupID, EmbeddableID: &e.EmbeddableID, EmbeddableVersionNumber: e.VersionNumber, Timestamp: micros(e.Timestamp),
				PageID: e.PageID, PageKey: e.PageKey, PageIndex: e.PageIndex,
				MaxPageID: e.MaxPageID, MaxPageKey: e.MaxPageKey, MaxPageIndex: e.MaxPageIndex, TotalPages: e.TotalPages,
				EventType: &e.EventType, ViewType: e.ViewType, CustomEventName: e.CustomEventName, CustomEventProps: e.CustomEventProps, URL: e.URL,
			})
		case client.EntryRemoved:
			r := c.Removal
			at, why := micros(r.RemovedAt), string(r.Reason)
			entries = append(entries, entryRow{Seq: c.Seq, Removed: true, RemovedAt: at, RemovalReason: &why, EntryID: r.EntryID})
			events = append(events, eventRow{Seq: c.Seq, Removed: true, RemovedAt: at, RemovalReason: &why, EntryID: r.EntryID})
		}
	}
	return entries, events
}
