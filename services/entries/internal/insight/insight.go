// Package insight owns the questions about many entries, with their answers: counts over time, the funnel of an
// embeddable, and the distribution of an answer. It does no I/O.
package insight

import "encoding/json"

// Filter selects entries. Times are Unix microseconds, and exclusive.
type Filter struct {
	ProjectID     string
	EmbeddableID  string // of the entry; "" for any
	CreatedAfter  int64  // wire.BeforeAll for no bound
	CreatedBefore int64  // wire.AfterAll for no bound
	UpdatedAfter  int64
	UpdatedBefore int64
	Version       *int64 // entries with a page view of this version; nil for any
}

// By splits counts.
type By string

// The values of By.
const (
	ByNone       By = "none"
	ByEmbeddable By = "embeddable"
	ByVersion    By = "version" // and by the embeddable that the version is of
)

// MaxCounts is how many rows of counts an answer may have.
const MaxCounts = 2000

// CountsQuestion asks for the entries of each interval.
type CountsQuestion struct {
	Filter
	Interval string // day, week, month or all
	By       By
	Timezone string // an IANA name: where days begin
}

// Larger returns the next larger interval, or "" for the largest.
func (q CountsQuestion) Larger() string {
	return map[string]string{"day": "week", "week": "month", "month": "all"}[q.Interval]
}

// Count has the entries that were created in an interval.
type Count struct {
	From         *string `json:"from"` // the interval's start; null for entries with a clock outside of the years 2000 to 2100
	To           *string `json:"to"`   // its end, exclusive
	EmbeddableID *string `json:"embeddable_id"`
	Version      *int64  `json:"version_number"`
	Entries      int64   `json:"entries"`
	Started      int64   `json:"started"`
	Completed    int64   `json:"completed"`
}

// MaxPages is how many pages a funnel has, from the first on. MaxFunnelRows is how many versions and pages an answer
// has together.
const (
	MaxPages      = 1000
	MaxFunnelRows = 20_000
)

// FunnelQuestion asks how far entries came.
type FunnelQuestion struct {
	Filter
	ByVersion bool
}

// Funnel shows how far entries came: all, or those with views of one version.
type Funnel struct {
	Version   *int64   `json:"version_number"`
	Entries   int64    `json:"entries"`
	Started   int64    `json:"started"`
	Completed int64    `json:"completed"`
	Seconds   *float64 `json:"median_seconds"` // from the first view to the first one of the last page
	Pages     []Page   `json:"pages"`
}

// Page is one page of a funnel.
type Page struct {
	Index   int64    `json:"page_index"`
	Key     *string  `json:"page_key"`
	Reached int64    `json:"reached"`
	Dropped int64    `json:"dropped"`
	Seconds *float64 `json:"median_seconds"` // from the first view of the page to the next view of another
}

// AnswersQuestion asks for the keys of entry_data, or for the values of one key.
type AnswersQuestion struct {
	Filter
	Key *string // nil: for the keys
}

// Keys has the top-level keys of entry_data.
type Keys struct {
	Entries    int64 `json:"entries"`
	Unreadable int64 `json:"unreadable"` // entries whose data Postgres cannot parse
	Keys       []Key `json:"keys"`
}

// Key is one key, with how many entries have it, in all and with a value of each JSON type.
type Key struct {
	Key     string          `json:"key"`
	Entries int64           `json:"entries"`
	Types   json.RawMessage `json:"types"`
}

// Answers has the values of one key.
type Answers struct {
	Key        string   `json:"key"`
	Entries    int64    `json:"entries"`
	Unreadable int64    `json:"unreadable"`
	None       int64    `json:"none"`   // readable entries without the key
	Others     int64    `json:"others"` // entries with a value that is not among Values
	Values     []Value  `json:"values"`
	Numbers    *Numbers `json:"numbers"` // null if no value is a number
}

// Value is one of the most frequent values.
type Value struct {
	Value   json.RawMessage `json:"value"`
	Entries int64           `json:"entries"`
}

// Numbers is the distribution of the values that are numbers.
type Numbers struct {
	Entries       int64   `json:"entries"`
	Minimum       float64 `json:"minimum"`
	LowerQuartile float64 `json:"lower_quartile"`
	Median        float64 `json:"median"`
	UpperQuartile float64 `json:"upper_quartile"`
	Maximum       float64 `json:"maximum"`
	Bins          []Bin   `json:"bins"`
}

// Bin counts the numbers from From up to To, exclusive; of the last bin, inclusive.
type Bin struct {
	From    float64 `json:"from"`
	To      float64 `json:"to"`
	Entries int64   `json:"entries"`
}
