// Package entry defines entries, their events and page views, and how a caller asks for a list of entries. The package
// does no I/O.
package entry

import (
	"strconv"

	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Entry is one user submission to an embeddable. Times are Unix microseconds.
type Entry struct {
	ProjectID    string
	EntryID      string
	GroupID      string
	EmbeddableID string
	ContactID    string
	CreatedAt    int64
	UpdatedAt    int64
	Data         string // JSON, byte for byte as it was received
}

// Event is one activity of an entry: a page view or another event. A nil field is null. The timestamp is in Unix
// microseconds.
type Event struct {
	ProjectID        string
	EntryID          string
	ContactID        string
	GroupID          string
	EmbeddableID     string
	Version          *int64 // of the embeddable
	Timestamp        int64
	PageID           *string
	PageKey          *string
	PageIndex        *int64
	MaxPageID        *string
	MaxPageKey       *string
	MaxPageIndex     *int64
	TotalPages       *int64
	EventType        string
	ViewType         *string
	CustomEventName  *string
	CustomEventProps *string // JSON, byte for byte
	URL              *string // page views return it on request
	EventID          *string // the source's id of the event, unique in its project
}

// PageViewed is the type of the events that are page views.
const PageViewed = "flowpage.viewed"

// Sort is the time that orders a list of entries. The entry id breaks ties.
type Sort byte

const (
	// ByUpdatedAt orders by the last update.
	ByUpdatedAt Sort = iota
	// ByCreatedAt orders by creation.
	ByCreatedAt
)

// String returns the field that the sort orders by, as the API names it: updated_at or created_at.
func (s Sort) String() string {
	if s == ByCreatedAt {
		return "created_at"
	}
	return "updated_at"
}

// List asks for a list of entries, or of entries with their page views.
type List struct {
	Selection

	Sort        Sort
	Descending  bool
	IncludeURLs bool // show the URLs of page views; a list of entries ignores it
}

// Bounds returns the start and the end of the list in its order, as far as conditions on the sorted time narrow the
// list. Both positions have an empty id, which is less than the id of any entry.
func (l List) Bounds() (start, end lists.Position) {
	low, high := lists.Position{Key: wire.BeforeAll}, lists.Position{Key: wire.AfterAll}
	for _, c := range l.Conditions {
		switch at, _ := c.Value.(int64); {
		case c.Field != l.Sort.String():
		case c.Kind == After:
			low.Key = at + 1 // times are whole microseconds
		case c.Kind == Before:
			high.Key = at
		}
	}
	if l.Descending {
		return high, low
	}
	return low, high
}

// Moves reports whether an entry can move forward in the list while a client reads the list. An update moves an entry
// towards the end of an ascending list by updated_at, and towards the start of a descending list. The source can also
// change created_at.
func (l List) Moves() bool { return l.Sort != ByUpdatedAt || !l.Descending }

// Events are listed by timestamp, then arrival: the id of an event's position is its arrival.

// Arrival returns the arrival number in p, a position in a list of events. If the position's id is empty or not a
// number, Arrival returns 0, which is before all events of the position's time.
func Arrival(p lists.Position) int64 {
	n, _ := strconv.ParseInt(p.ID, 10, 64)
	return n
}

// ValidArrival reports whether the id in a client's position is empty or an arrival number of at least 1.
func ValidArrival(p lists.Position) bool {
	if p.ID == "" {
		return true
	}
	n, err := strconv.ParseInt(p.ID, 10, 64)
	return err == nil && n > 0
}

// EventBounds returns the start and the end of a list of all events of an entry. The start of a descending list is
// after all times.
func EventBounds(descending bool) (start, end lists.Position) {
	low, high := lists.Position{Key: wire.BeforeAll}, lists.Position{Key: wire.AfterAll}
	if descending {
		return high, low
	}
	return low, high
}
