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

// ChangeType is the kind of a [Change] in a project's change feed. A newer server may send types that this package
// does not define.
type ChangeType string

// The types of changes: an entry was stored, an event was stored, or an entry was removed with its events.
const (
	EntryChanged ChangeType = "entry"
	EventAdded   ChangeType = "event"
	EntryRemoved ChangeType = "entry_removed"
)

// Change is one item of a project's change feed. Type determines which one of Entry, Event and Removal is set; the
// others are nil. For a type that this version does not know, all three are nil.
type Change struct {
	Type ChangeType
	// Seq is the number of the change. Later changes of the project have greater numbers, with gaps.
	Seq     int64
	Entry   *Entry
	Event   *ChangedEvent
	Removal *Removal
}

// feedChange is the JSON form of a [Change] in the feed. The fields of a removal are next to those of the change,
// without an object of their own.
type feedChange struct {
	Type  ChangeType    `json:"change"`
	Seq   int64         `json:"seq"`
	Entry *Entry        `json:"entry,omitempty"`
	Event *ChangedEvent `json:"event,omitempty"`
	*Removal
}

// UnmarshalJSON decodes one change of the feed. A change without the record that its type requires is an error.
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

// MarshalJSON encodes a change in the JSON form of the feed, which [Change.UnmarshalJSON] decodes.
func (c Change) MarshalJSON() ([]byte, error) {
	return json.Marshal(feedChange{c.Type, c.Seq, c.Entry, c.Event, c.Removal})
}

// ChangedEvent is an event as the change feed has it: with its key, and with the source's id and page if the source
// sent them.
type ChangedEvent struct {
	Event
	// EventID is the id that the source gave the event; nil if the source sent none.
	EventID *string `json:"event_id"`
	// URL is the address of the page on which the event happened; nil if the source sent none.
	URL *string `json:"url"`
	// EventKey identifies the event within its project. The server makes the key.
	EventKey string `json:"event_key"`
}

// Removal reports that the server removed an entry, and all events with the entry's id.
type Removal struct {
	EntryID   string        `json:"entry_id"`
	RemovedAt time.Time     `json:"removed_at"`
	Reason    RemovalReason `json:"reason"`
}

// RemovalReason is the reason why the server removed an entry: [Erased] or [Purged].
type RemovalReason string

// The reasons why the server removes entries, with their events.
const (
	// Erased means that an administrator erased the entry. The server rejects later data for the entry's id.
	Erased RemovalReason = "erased"
	// Purged means that a purge removed the entry because of its age. The entry may be stored again.
	Purged RemovalReason = "purged"
)

// ChangeQuery selects the changes that a reader of a project's change feed gets, and where the reader begins. The zero
// value reads all changes from the beginning.
type ChangeQuery struct {
	// Types are the types of changes to read; an empty slice reads all types. A cursor is only valid for the same
	// types.
	Types []ChangeType
	// Cursor is the NextCursor of an earlier page of the same project and types: the feed continues after that page.
	// "" is the beginning.
	Cursor string
	// After is the number of a change after which the feed starts, or "now" to start after the newest change. The
	// client does not send After if Cursor is set.
	After string
	// PageSize is how many changes one request asks for; 0 asks for DefaultPageSize.
	PageSize int
	// Wait is the longest time that the server waits for a change before it answers with an empty page. The client
	// rounds Wait up to whole seconds, and the server accepts at most 60. Zero: [Client.Follow] waits 30 s, and
	// [Client.ChangesPage] does not wait. [Client.Changes] ignores Wait.
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

// List returns the change feed of projectID with the parameters of q, for [Client.Raw] and [Client.JSON].
func (q ChangeQuery) List(projectID string) List {
	return List{path("projects", projectID, "entries-changes"), q.values()}
}

// defaultWait is how long one request of [Client.Follow] waits for a change if [ChangeQuery] does not say.
const defaultWait = 30 * time.Second

// ChangePage is one page of a change feed: changes in their order, and the cursor for the next page.
type ChangePage struct {
	// Changes are the changes of this page. Changes may be empty even if the feed has more.
	Changes []Change
	// NextCursor is the cursor with which the feed continues after this page. NextCursor is always set, and never
	// expires.
	NextCursor string
	// Current reports that the feed had no more changes after this page when the server answered.
	Current bool
	// LastSeq is the number of the project's newest change; 0 for none.
	LastSeq int64
}

// ChangesPage reads one page of projectID's change feed, from q.Cursor on. An answer without a next cursor is an
// error.
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

// Changes iterates over the pages of projectID's change feed from q.Cursor on. The caller should apply each page, and
// then store the page's NextCursor. The iteration ends after the first page that is current, or with an error as the
// last item.
func (c *Client) Changes(ctx context.Context, projectID string, q ChangeQuery) iter.Seq2[ChangePage, error] {
	q.Wait = 0
	return c.changes(ctx, projectID, q, false)
}

// Follow iterates like [Client.Changes], but waits for more changes after a page that is current. The iteration ends
// when ctx is done, or a request fails and the client does not retry it again; the error is the last item. A page may
// have no changes. [Retry] bounds the attempts of each request, and [Forever] sets no bound.
func (c *Client) Follow(ctx context.Context, projectID string, q ChangeQuery) iter.Seq2[ChangePage, error] {
	if q.Wait <= 0 {
		q.Wait = defaultWait
	}
	return c.changes(ctx, projectID, q, true)
}

func (c *Client) changes(ctx context.Context, projectID string, q ChangeQuery, follow bool) iter.Seq2[ChangePage, error] {
	return func(yield func(ChangePage, error) bool) {
		q := q // a second iteration starts at q.Cursor again
		for {
			page, err := c.ChangesPage(ctx, projectID, q)
			if !yield(page, err) || err != nil || page.Current && !follow {
				return
			}
			q.Cursor = page.NextCursor
		}
	}
}
