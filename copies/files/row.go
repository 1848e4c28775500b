package files

import "github.com/lectern-dev/lectern/client"

// entryRow is a row in a file of entries: the state of an entry from the change Seq on.
type entryRow struct {
	Seq          int64  `parquet:"seq"`
	EntryID      string `parquet:"entry_id"`
	GroupID      string `parquet:"group_id,dict"`
	ProjectID    string `parquet:"project_id,dict"`
	EmbeddableID string `parquet:"embeddable_id,dict"`
	ContactID    string `parquet:"contact_id"`
	CreatedAt    int64  `parquet:"created_at,timestamp(microsecond:utc)"`
	UpdatedAt    int64  `parquet:"updated_at,timestamp(microsecond:utc)"`
	EntryData    string `parquet:"entry_data"`
}

// eventRow is a row in the file of events: one event, and the number of its change.
type eventRow struct {
	Seq                     int64   `parquet:"seq"`
	EventKey                string  `parquet:"event_key"`
	EventID                 *string `parquet:"event_id,optional"`
	EntryID                 string  `parquet:"entry_id"`
	ContactID               string  `parquet:"contact_id"`
	ProjectID               string  `parquet:"project_id,dict"`
	GroupID                 string  `parquet:"group_id,dict"`
	EmbeddableID            string  `parquet:"embeddable_id,dict"`
	EmbeddableVersionNumber *int64  `parquet:"embeddable_version_number,optional"`
	Timestamp               int64   `parquet:"timestamp,timestamp(microsecond:utc)"`
	PageID                  *string `parquet:"page_id,optional,dict"`
	PageKey                 *string `parquet:"page_key,optional,dict"`
	PageIndex               *int64  `parquet:"page_index,optional"`
	MaxPageID               *string `parquet:"max_page_id,optional,dict"`
	MaxPageKey              *string `parquet:"max_page_key,optional,dict"`
	MaxPageIndex            *int64  `parquet:"max_page_index,optional"`
	TotalPages              *int64  `parquet:"total_pages,optional"`
	EventType               string  `parquet:"event_type,dict"`
	ViewType                *string `parquet:"view_type,optional,dict"`
	CustomEventName         *string `parquet:"custom_event_name,optional,dict"`
	CustomEventProps        *string `parquet:"custom_event_props,optional"`
	URL                     *string `parquet:"url,optional,dict"`
}

// removalRow is a row in the file of removals. A removal removes the rows of the entry and of its events whose Seq is
// smaller.
type removalRow struct {
	Seq       int64  `parquet:"seq"`
	EntryID   string `parquet:"entry_id"`
	RemovedAt int64  `parquet:"removed_at,timestamp(microsecond:utc)"`
	Reason    string `parquet:"removal_reason,dict"`
}

// key has the two columns that all files of changes have: the number of the change, and the id of the entry.
type key struct {
	Seq     int64  `parquet:"seq"`
	EntryID string `parquet:"entry_id"`
}

// row is implemented by the rows of all files of changes: entries, events and removals.
type row interface {
	entryRow | eventRow | removalRow
	key() key
}

func (r entryRow) key() key   { return key{r.Seq, r.EntryID} }
func (r eventRow) key() key   { return key{r.Seq, r.EntryID} }
func (r removalRow) key() key { return key{r.Seq, r.EntryID} }

// dataOf returns the entry_data of r, which must be an *entryRow.
func dataOf[T row](r *T) string { return any(r).(*entryRow).EntryData }

// removals maps the id of each removed entry to the number of the removal.
type removals map[string]int64

// has reports whether a removal removes the row with the key k: the removal is of the same entry and has a greater
// number.
func (r removals) has(k key) bool { return k.Seq < r[k.EntryID] }

// batch is the rows of a batch of changes. Rows that a later removal in the same batch removes are left out.
type batch struct {
	embeddables []string              // that have entries, in the order of their first entry
	entries     map[string][]entryRow // by embeddable
	events      []eventRow
	removals    []removalRow
	// removed has all removals of the batch, and erased has the removals with the reason "erased".
	removed, erased removals
}

func rowsOf(changes []client.Change) *batch {
	b := &batch{entries: map[string][]entryRow{}, removed: removals{}, erased: removals{}}
	events := 0
	for i := range changes {
		switch c := &changes[i]; c.Type {
		case client.EventAdded:
			events++
		case client.EntryRemoved:
			r := c.Removal
			b.removed[r.EntryID] = c.Seq
			if r.Reason == client.Erased {
				b.erased[r.EntryID] = c.Seq
			}
			b.removals = append(b.removals, removalRow{c.Seq, r.EntryID, r.RemovedAt.UnixMicro(), string(r.Reason)})
		}
	}
	b.events = make([]eventRow, 0, events)
	for i := range changes {
		switch c := &changes[i]; c.Type {
		case client.EntryChanged:
			b.addEntry(c.Seq, c.Entry)
		case client.EventAdded:
			b.addEvent(c.Seq, c.Event)
		}
	}
	return b
}

func (b *batch) addEntry(seq int64, e *client.Entry) {
	if b.removed.has(key{seq, e.EntryID}) {
		return
	}
	if b.entries[e.EmbeddableID] == nil {
		b.embeddables = append(b.embeddables, e.EmbeddableID)
	}
	b.entries[e.EmbeddableID] = append(b.entries[e.EmbeddableID], entryRow{
		Seq: seq, EntryID: e.EntryID, GroupID: e.GroupID, ProjectID: e.ProjectID, EmbeddableID: e.EmbeddableID, ContactID: e.ContactID,
		CreatedAt: e.CreatedAt.UnixMicro(), UpdatedAt: e.UpdatedAt.UnixMicro(), EntryData: e.Data,
	})
}

func (b *batch) addEvent(seq int64, e *client.ChangedEvent) {
	if b.removed.has(key{seq, e.EntryID}) {
		return
	}
	b.events = append(b.events, eventRow{
		Seq: seq, EventKey: e.EventKey, EventID: e.EventID, EntryID: e.EntryID, ContactID: e.ContactID, ProjectID: e.ProjectID,
		GroupID: e.GroupID, EmbeddableID: e.EmbeddableID, EmbeddableVersionNumber: e.VersionNumber, Timestamp: e.Timestamp.UnixMicro(),
		PageID: e.PageID, PageKey: e.PageKey, PageIndex: e.PageIndex,
		MaxPageID: e.MaxPageID, MaxPageKey: e.MaxPageKey, MaxPageIndex: e.MaxPageIndex, TotalPages: e.TotalPages,
		EventType: e.EventType, ViewType: e.ViewType, CustomEventName: e.CustomEventName, CustomEventProps: e.CustomEventProps, URL: e.URL,
	})
}
