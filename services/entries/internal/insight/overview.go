package insight

import (
	"encoding/json"
	"time"
)

// OverviewQuestion asks for the overview of a project: counts of each interval, totals of the earlier period, and
// figures of each embeddable. By is ByNone.
type OverviewQuestion struct {
	CountsQuestion
	Now time.Time // ends a period that has no end
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
