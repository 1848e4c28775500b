package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"
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

// Change is one change of a project. Type determines which one of Entry, Event and Removal is set; the others are nil. For
// a type that this version does not know, all three are nil.
type Change struct {
	Type ChangeType
	// Seq is the number of the change. Numbers increase within the project, with gaps.
	Seq     int64
	Entry   *Entry
	Event   *ChangedEvent
	Removal *Removal
}

// feedChange is a change as the feed has it: without an object of its own for a removal.
type feedChange struct {
	Type  ChangeType    `json:"change"`
	Seq   int64         `json:"seq"`
	Entry *Entry        `json:"entry,omitempty"`
	Event *ChangedEvent `json:"event,omitempty"`
	*Removal
}

// UnmarshalJSON decodes a change of the feed. It fails if the change lacks the record that its type requires.
func (c *Change) UnmarshalJSON(b []byte) error {
	var in feedChange
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*c = Change{Type: in.Type, Seq: in.Seq}
	whole := true
	switch c.Type {
	case EntryChanged:
		c.Entry, whole = in.Entry, in.Entry != nil
	case EventAdded:
		c.Event, whole = in.Event, in.Event != nil
	case EntryRemoved:
		c.Removal, whole = in.Removal, in.Removal != nil
	}
	if !whole {
		return fmt.Errorf("change number %d of type %q has no record", c.Seq, c.Type)
	}
	return nil
}

// MarshalJSON encodes a change as the feed has it.
func (c Change) MarshalJSON() ([]byte, error) {
	return json.Marshal(feedChange{c.Type, c.Seq, c.Entry, c.Event, c.Removal})
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
	// After starts the feed after the change of this number, or with "now" after the newest one. Cursor replaces it.
	After string
	// PageSize is how many changes one request asks for; 0 asks for DefaultPageSize.
	PageSize int
	// Wait is how long the server waits for a change before it answers with an empty page. It is rounded up to whole
	// seconds, at most 60. Zero: [Client.Follow] waits 30 s, and [Client.ChangesPage] does not wait. [Client.Changes]
	// never waits.
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
	if q.After != "" {
		v.Set("after", q.After)
	}
	if q.Wait > 0 {
		v.Set("wait", strconv.Itoa(int((q.Wait+time.Second-1)/time.Second)))
	}
	return v
}

// List returns projectID's change feed, for [Client.Raw] and [Client.JSON].
func (q ChangeQuery) List(projectID string) List {
	return List{path("projects", projectID, "entries-changes"), q.values()}
}

// defaultWait is how long one request of a follower waits.
const defaultWait = 30 * time.Second

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

// ChangesPage reads one page of the feed of [Client.Changes]. It fails if the answer has no next cursor.
func (c *Client) ChangesPage(ctx context.Context, projectID string, q ChangeQuery) (ChangePage, error) {
	var page ChangePage
	err := c.Raw(ctx, q.List(projectID), q.Cursor, Paging{PageSize: q.PageSize}.size(0), func(raw RawPage) (err error) {
		page = ChangePage{NextCursor: raw.NextCursor, Current: raw.Current, LastSeq: raw.LastSeq}
		if raw.NextCursor == "" {
			return errors.New("the answer has no X-Next-Cursor: does something in between remove headers?")
		}
		page.Changes, err = decodeLines[Change](raw.Body)
		return err
	})
	return page, err
}

// Changes iterates over the pages of projectID's change feed from q.Cursor on. Apply each page, then store its
// NextCursor. The iteration ends after the first page that is current. An error is the last item.
func (c *Client) Changes(ctx context.Context, projectID string, q ChangeQuery) iter.Seq2[ChangePage, error] {
	q.Wait = 0
	return c.changes(ctx, projectID, q, false)
}

// Follow iterates like [Client.Changes], but waits for more changes after a page that is current. It ends when ctx is
// done or a request fails for good; the error is the last item. A page may be empty. With [Forever] attempts, no outage
// of the server ends it.
func (c *Client) Follow(ctx context.Context, projectID string, q ChangeQuery) iter.Seq2[ChangePage, error] {
	if q.Wait <= 0 {
		q.Wait = defaultWait
	}
	return c.changes(ctx, projectID, q, true)
}

func (c *Client) changes(ctx context.Context, projectID string, q ChangeQuery, follow bool) iter.Seq2[ChangePage, error] {
	return func(yield func(ChangePage, error) bool) {
		q := q // another iteration starts at the beginning again
		for {
			page, err := c.ChangesPage(ctx, projectID, q)
			if !yield(page, err) || err != nil || page.Current && !follow {
				return
			}
			q.Cursor = page.NextCursor
		}
	}
}
