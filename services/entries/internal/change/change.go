// Package change owns the nouns of the change feed: what can change in a project, and how a reader asks for changes.
// It does no I/O.
//
// Each change of a project has a number. Numbers grow, and become visible in their order: a transaction takes its
// numbers under a lock that it holds until its end. So a reader that has seen all changes up to a number has missed
// none.
package change

import (
	"fmt"
	"strings"

	"github.com/lectern-dev/lectern/shared/http/pagelist"
)

// Types is a set of types of changes.
type Types uint8

// The types of changes.
const (
	Entry   Types = 1 << iota // an entry was stored
	Event                     // an event was stored
	Removal                   // an entry was removed, with all its events

	All = Entry | Event | Removal
)

// names are the types in the API, in the order of their bits.
var names = [...]string{"entry", "event", "entry_removed"}

// ParseTypes parses a list of types, separated by commas. The error is for clients: it lists the allowed types.
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

// typeOf returns the type of that name, or 0.
func typeOf(name string) Types {
	for i, n := range names {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// String lists the types as the API writes them.
func (t Types) String() string {
	var list []string
	for i, n := range names {
		if t&(1<<i) != 0 {
			list = append(list, n)
		}
	}
	return strings.Join(list, ",")
}

// Reason is why an entry was removed.
type Reason string

// The reasons of removals.
const (
	// Erased entries never come back: ingest refuses later data for their ids.
	Erased Reason = "erased"
	// Purged entries were too old. They may come back.
	Purged Reason = "purged"
)

// Ask asks for a page of a project's changes.
type Ask struct {
	ProjectID string
	Types     Types
	After     int64 // the number up to which the reader has all changes
	Limit     int
	Format    pagelist.Format
}

// Page is a page of changes.
type Page struct {
	*pagelist.List
	Last     int64 // the project's newest number; 0 for a project without changes
	Examined int64 // with this page the reader has all changes up to this number
	More     bool  // more changes can be read now
}

// Empty reports whether the page has no change.
func (p *Page) Empty() bool { return p.Begun() == 0 }

// Stored is the outcome of incoming records. Records that are neither counted nor erased changed nothing.
type Stored struct {
	Count    int   // the records that were new, or changed the stored ones
	Replaced int   // how many of them replaced a stored one
	Erased   []int // the indexes of records whose entry was erased, in order
}

// Removed is how much was removed.
type Removed struct {
	Entries int  `json:"entries"`
	Events  int  `json:"events"`
	More    bool `json:"more,omitzero"` // the request has reached its bound, and more is left
}

// Add adds the counts of another transaction.
func (r *Removed) Add(other Removed) {
	r.Entries += other.Entries
	r.Events += other.Events
}
