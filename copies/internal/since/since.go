// Package since lists what revisions of the copies in Postgres and in files have added to their tables. The list says
// what a version adds to the copy of an older version, and what an older version leaves unfilled. Only packages of
// copies and their tests can use another list.
package since

import (
	"slices"
	"strings"
)

// Table lists tables and columns by the revision that added them.
type Table struct {
	// Since has the revision that added a table, or a column as TABLE.COLUMN. All others are in each copy of the layout.
	Since map[string]int64
	// Number is the revision that a build writes. The build leaves out tables and columns of later revisions.
	Number int64
}

// Copies is the list of this version. A field of the API that is new after version 0.1.0 gets the next revision here,
// and Number becomes that revision. A column that changes its name or its type needs a new layout instead.
var Copies = Table{
	Number: 1,
	Since:  map[string]int64{"lectern_sync.revision": 1, "lectern_sync.unfilled_from": 1, "lectern_sync.unfilled_cursor": 1},
}

// Gained returns the columns of entries and events that revisions after was, up to t.Number, have added, sorted. The rows of
// these tables come from the feed.
func (t Table) Gained(was int64) (names []string) {
	for name, at := range t.Since {
		table, _, _ := strings.Cut(name, ".")
		if was < at && at <= t.Number && (table == "entries" || table == "events") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
