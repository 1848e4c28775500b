// Package change defines the types of the change feed: what can change in a project, and how a reader asks for changes.
// The package does no I/O.
//
// Each change of a project has a number. Numbers grow, and become visible in their order, because a transaction takes
// its numbers under a lock that it holds until its end. So a reader that has read up to a number finds all later
// changes after that number.
package change

import (
	"fmt"
	"strings"

	"github.com/lectern-dev/lectern/shared/postgres/lists"
)

// Types is a bit set of types of changes.
type Types uint8

// The types of changes, with one bit each. All has every type.
const (
	Entry   Types = 1 << iota // an entry was stored
	Event                     // an event was stored
	Removal                   // an entry was removed, with all its events

	All = Entry | Event | Removal
)

// names has the names of the types in the API, in the order of their bits.
var names = [...]string{"entry", "event", "entry_removed"}

// ParseTypes parses a list of different types, separated by commas. The error is for clients: it lists the allowed
// types.
func ParseTypes(list string) (Types, error) {
	var set Types
	for name := range strings.SplitSeq(list, ",") {
		t := typeOf(name)
		if t == 0 || set&t != 0 {
			return 0, fmt.Errorf("each of %s at most once, separated by commas", strings.Join(names[:], ", "))
		}
		set |= t
	}
	return set, nil
}

// typeOf returns the type with the given name in the API, or 0 if there is none.
func typeOf(name string) Types {
	for i, n := range names {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// String returns the names of the types in the API, separated by commas. [ParseTypes] accepts the result, unless the
// set is empty.
func (t Types) String() string {
	var list []string
	for i, n := range names {
		if t&(1<<i) != 0 {
			list = append(list, n)
		}
	}
	return strings.Join(list, ",")
}

// Reason says why an entry was removed. The change feed shows the reason.
type Reason string

// The reasons why an entry is removed.
const (
	// Erased entries do not come back: ingest refuses data for their ids until the whole project is removed.
	Erased Reason = "erased"
	// Purged entries were too old. Ingest stores an entry with the same id again.
	Purged Reason = "purged"
)

// Ask asks for a page of a project's changes. Requests with equal Asks can share one page.
type Ask struct {
	ProjectID string
	Types     Types
	After     int64 // the number up to which the reader has all changes
	Limit     int
	Format    lists.Format
}

// Page is a page of a project's changes. The caller closes it.
type Page struct {
	*lists.List
	Last     int64 // the project's newest number when the page was opened; 0 for a project without changes
	Examined int64 // with this page the reader has all changes of the asked types up to this number
	More     bool  // more changes can be read now
}

// Empty reports whether the page has no change.
func (p *Page) Empty() bool { return p.Begun() == 0 }

// Stored says what the store did with incoming records. A record that neither Count nor Erased covers changed
// nothing.
type Stored struct {
	Count    int   // the records that were new, or changed the stored ones
	Replaced int   // the records that replaced a stored one; Count includes them
	Erased   []int // the indexes of records whose entry was erased, in order
}

// Removed counts the entries and events that the store has removed for one request, or would remove in a dry run.
type Removed struct {
	Entries int  `json:"entries"`
	Events  int  `json:"events"`
	More    bool `json:"more,omitzero"` // the request has reached its bound, and more may be left
}

// Add adds the counts of another Removed to r, and does not change More.
func (r *Removed) Add(other Removed) {
	r.Entries += other.Entries
	r.Events += other.Events
}
