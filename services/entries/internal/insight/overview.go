package insight

import (
	"encoding/json"
	"time"

	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

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

// Overview is the answer to an OverviewQuestion. Previous has the totals of the earlier period. Previous is nil if
// the question has no condition created_after. Embeddables is JSON of the store.
type Overview struct {
	Intervals   []Count         `json:"intervals"`
	Previous    *Totals         `json:"previous"`
	Embeddables json.RawMessage `json:"embeddables"`
}
