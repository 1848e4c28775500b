package insight

import (
	"cmp"
	"slices"
	"time"

	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// MaxEmbeddables is how many embeddables an overview lists at most. An overview lists the embeddables with the most
// entries.
const MaxEmbeddables = 1000

// OverviewQuestion asks for the overview of a project: counts of each interval, totals of the earlier period, and
// figures of each embeddable. By is ByNone.
type OverviewQuestion struct {
	CountsQuestion
	Now time.Time // ends a period that has no end
}

// Earlier returns the time after which the earlier period begins, in Unix microseconds. The earlier period ends where
// the period of q begins, and is as long, but begins at [wire.MinTime] at the earliest. ok is false if q has no
// condition created_after, and then there is no earlier period.
func (q OverviewQuestion) Earlier() (before int64, ok bool) {
	after, until := int64(0), q.Now.UnixMicro()
	for _, c := range q.Conditions {
		switch {
		case c.Field != "created_at":
		case c.Kind == entry.After:
			after, ok = c.Value.(int64), true
		case c.Kind == entry.Before:
			until = c.Value.(int64)
		}
	}
	return max(after-max(until-after-1, 0), wire.MinTime), ok
}

// Totals counts all entries of a period, the entries with a page view (Started), and the entries that came to the
// last page (Completed).
type Totals struct {
	Entries   int `json:"entries"`
	Started   int `json:"started"`
	Completed int `json:"completed"`
}

// Drop is the page of an embeddable with the largest share of lost entries. Only pages that a tenth of the started
// entries reached can be a Drop. Dropped counts the entries that reached the page, came no further, and did not end
// there.
type Drop struct {
	Index   int64  `json:"page_index"`
	Key     string `json:"page_key"`
	Reached int    `json:"reached"`
	Dropped int    `json:"dropped"`
}

// OverviewEmbeddable has the figures of one embeddable in an overview. Previous has the totals of the earlier period,
// and is nil if there is no earlier period. LargestDrop is nil if no page fulfils the conditions of a [Drop].
type OverviewEmbeddable struct {
	EmbeddableID string `json:"embeddable_id"`
	Totals
	Previous    *Totals `json:"previous"`
	LargestDrop *Drop   `json:"largest_drop"`
}

// Overview is the answer to an OverviewQuestion. Previous has the totals of the earlier period. Previous is nil if
// the question has no condition created_after.
type Overview struct {
	Intervals   []Count              `json:"intervals"`
	Previous    *Totals              `json:"previous"`
	Embeddables []OverviewEmbeddable `json:"embeddables"`
}

// Sort sorts the embeddables by their number of entries, the largest first, and then by id.
func (o *Overview) Sort() {
	slices.SortFunc(o.Embeddables, func(a, b OverviewEmbeddable) int {
		return cmp.Or(cmp.Compare(b.Entries, a.Entries), cmp.Compare(a.EmbeddableID, b.EmbeddableID))
	})
}
