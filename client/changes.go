package client

import (
	"context"
	"iter"
	"net/url"
	"strings"
	"time"
)

// ChangeType is the type of a change.
type ChangeType string

// The types of changes.
const (
	EntryChanged ChangeType = "entry"
	EventAdded   ChangeType = "event"
	EntryRemoved ChangeType = "entry_removed"
)

// Change is one change of a project. Type determines which one of Entry, Event and Removal is set.
type Change struct {
	Type ChangeType `json:"change"`
	// Seq is the number of the change. Numbers increase within the project, with gaps.
	Seq   int64         `json:"seq"`
	Entry *Entry        `json:"entry,omitempty"`
	Event *ChangedEvent `json:"event,omitempty"`
	*Removal
}

// ChangedEvent is an event with the fields that identify it.
type ChangedEvent struct {
	Event
	// EventID is the source's id of the event.
	EventID *string `json:"event_id"`
	// URL is the page of the event.
	URL *string `json:"url"`
	// EventKey identifies the event within its project.
	EventKey string `json:"event_key"`
}

// Removal reports that an entry and all events of its id were removed.
type Removal struct {
	EntryID   string        `json:"entry_id"`
	RemovedAt time.Time     `json:"removed_at"`
	Reason    RemovalReason `json:"reason"`
}

// RemovalReason is the reason why an entry was removed.
type RemovalReason string

// The reasons of removals.
const (
	// Erased entries never come back.
	Erased RemovalReason = "erased"
	// Purged entries were too old. They may come back.
	Purged RemovalReason = "purged"
)

// ChangeQuery selects changes of a project.
type ChangeQuery struct {
	// Types are the types to read; none reads all. A cursor is only valid for the same types.
	Types []ChangeType
	// Cursor continues after an earlier page of the same project and types; "" is the beginning.
	Cursor string
	// PageSize is how many changes one request asks for; 0 asks for DefaultPageSize.
	PageSize int
	// Wait is how long the server waits for a change before it answers with an empty page. It is rounded up to whole
	// seconds, at most 60. With a wait, [Client.Changes] continues until ctx is done.
	Wait time.Duration
}

func (q ChangeQuery) values() url.Values {
	v := url.Values{}
	if len(q.Types) > 0 {
		var names []string
		for _, t := range q.Types {
			names = append(names, string(t))
		}
		v.Set("types", strings.Join(names, ","))
	}
	if q.Wait > 0 {
		setInt(v, "wait", int((q.Wait+time.Second-1)/time.Second))
	}
	return v
}

// List returns projectID's change feed, for [Client.Raw] and [Client.JSON].
func (q ChangeQuery) List(projectID string) List {
	return List{path("projects", projectID, "entries-changes"), q.values()}
}

// ChangePage is one page of a change feed.
type ChangePage struct {
	// Changes may be empty even if the reader is not current.
	Changes []Change
	// NextCursor continues after this page. It is always set, and never expires.
	NextCursor string
	// Current reports that the reader has all existing changes.
	Current bool
	// LastSeq is the number of the project's newest change; 0 for none.
	LastSeq int64
}

// ChangesPage reads one page of the feed of [Client.Changes].
func (c *Client) ChangesPage(ctx context.Context, projectID string, q ChangeQuery) (ChangePage, error) {
	var page ChangePage
	err := c.Raw(ctx, q.List(projectID), q.Cursor, Paging{PageSize: q.PageSize}.size(0), func(raw RawPage) (err error) {
		page = ChangePage{NextCursor: raw.NextCursor, Current: raw.Current, LastSeq: raw.LastSeq}
		page.Changes, err = decodeLines[Change](raw.Body)
		return err
	})
	return page, err
}

// Changes iterates over the pages of projectID's change feed from q.Cursor on. Apply each page, then store its
// NextCursor. The iteration ends with the first page that is current. If q has a wait, it follows the feed instead, and a
// page may be empty. An error is the last item.
func (c *Client) Changes(ctx context.Context, projectID string, q ChangeQuery) iter.Seq2[ChangePage, error] {
	return func(yield func(ChangePage, error) bool) {
		for {
			page, err := c.ChangesPage(ctx, projectID, q)
			if !yield(page, err) || err != nil || page.Current && q.Wait == 0 {
				return
			}
			q.Cursor = page.NextCursor
		}
	}
}
