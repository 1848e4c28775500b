package client

import (
	"context"
	"encoding/json"
	"time"
)

// InsightFilter selects the entries that an insight counts. An insight is a summary of entries: counts, an overview, a
// funnel, or answers. The zero value selects all entries.
type InsightFilter struct {
	// EmbeddableID selects entries of one embeddable; empty selects entries of all. [FunnelQuery] and [AnswerQuery]
	// require an EmbeddableID.
	EmbeddableID string `query:"embeddable_id"`
	// CreatedAfter and CreatedBefore bound the entry's created_at. UpdatedAfter and UpdatedBefore bound the entry's
	// updated_at. All bounds are exclusive, and a zero time is no bound.
	CreatedAfter  time.Time `query:"created_after"`
	CreatedBefore time.Time `query:"created_before"`
	UpdatedAfter  time.Time `query:"updated_after"`
	UpdatedBefore time.Time `query:"updated_before"`
	// Version selects entries with a page view of this version of the embeddable; nil selects entries of all versions. If
	// Version is set, Completed and FurthestPage only use the page views of the version.
	Version *int64 `query:"version"`
	// Completed, FurthestPage, Answer and AnswerKey select entries as in an [EntryQuery].
	Completed    *bool  `query:"completed"`
	FurthestPage *int64 `query:"furthest_page"`
	Answer       string `query:"answer"`
	AnswerKey    string `query:"answer_key"`
}

// CountQuery asks the server how many entries were created in each interval, such as a day.
type CountQuery struct {
	InsightFilter

	// Interval is hour, day, week, month or all. An empty Interval is day.
	Interval string `query:"interval"`
	// By splits each interval into one row for each embeddable or version. By is none, embeddable or version. An empty
	// By is none.
	By string `query:"by"`
	// Timezone is the IANA name of the time zone in which days begin, such as Europe/Berlin. An empty Timezone is UTC.
	Timezone string `query:"timezone"`
	// ContactID, GroupID and Search select entries as in an [EntryQuery].
	ContactID string `query:"contact_id"`
	GroupID   string `query:"group_id"`
	Search    string `query:"search"`
	// AtMost stops counting at this number of entries, at most 1,000,000; 0 counts all. An AtMost requires the Interval
	// all, without By.
	AtMost int `query:"at_most"`
}

// List returns the counts of projectID's entries as a list, for [Client.JSON].
func (q CountQuery) List(projectID string) List {
	return List{path("projects", projectID, "entries-counts"), valuesOf(q)}
}

// OverviewQuery asks the server for an [EntriesOverview]: counts by interval and by embeddable, and counts of the
// period before.
type OverviewQuery struct {
	InsightFilter

	// Interval is hour, day, week, month or all. An empty Interval is day.
	Interval string `query:"interval"`
	// Timezone is the IANA name of the time zone in which days begin, such as Europe/Berlin. An empty Timezone is UTC.
	Timezone string `query:"timezone"`
}

// List returns the overview of projectID's entries, for [Client.JSON]. The body that JSON returns is one object, not
// an array.
func (q OverviewQuery) List(projectID string) List {
	return List{path("projects", projectID, "entries-overview"), valuesOf(q)}
}

// FunnelQuery asks the server which pages the entries of an embeddable reached.
type FunnelQuery struct {
	InsightFilter

	// ByVersion asks for a funnel of each version of the embeddable, instead of one funnel of all.
	ByVersion bool
}

// List returns the funnels of the embeddable in projectID, for [Client.JSON]. Without ByVersion, the list has one
// funnel.
func (q FunnelQuery) List(projectID string) List {
	v := valuesOf(q)
	if q.ByVersion {
		v.Set("by", "version")
	}
	return List{path("projects", projectID, "entries-funnel"), v}
}

// AnswerQuery asks the server for the keys of entry_data and how often each occurs, or for the most frequent values of
// one key.
type AnswerQuery struct {
	InsightFilter

	// Key is a top-level key of entry_data, whose values [Client.Answers] reads. [Client.AnswerKeys] ignores Key.
	Key string `query:"key"`
	// Values is how many values the server returns for each of the first 100 keys, at most 50; 0 is none.
	// [Client.Answers] ignores Values.
	Values int `query:"values"`
	// Previous asks for the counts of the period of the same length before. CreatedAfter must be set.
	Previous bool `query:"previous"`
	// Interval is hour, day, week or month, for counts of the values of Key in each interval. [Client.AnswerKeys] ignores
	// Interval.
	Interval string `query:"interval"`
	// Timezone is the IANA name of the time zone in which days begin. An empty Timezone is UTC.
	Timezone string `query:"timezone"`
}

// List returns the keys of entry_data, or the values of one key, for [Client.JSON]. The body that JSON returns is one
// object, not an array.
func (q AnswerQuery) List(projectID string) List {
	return List{path("projects", projectID, "entries-answers"), valuesOf(q)}
}

// EntryCount is the number of entries that were created in one interval. From and To are nil in a row that only has
// entries from outside of the years 2000 to 2100. EmbeddableID is nil unless the query splits the counts. VersionNumber
// is nil unless the query splits by version, and for entries without a view of a version. AtLeast reports whether the
// server stopped counting at [CountQuery.AtMost]; then From, To, Started and Completed are nil.
type EntryCount struct {
	From          *time.Time `json:"from"`
	To            *time.Time `json:"to"` // exclusive
	EmbeddableID  *string    `json:"embeddable_id"`
	VersionNumber *int64     `json:"version_number"`
	Entries       int64      `json:"entries"`
	Started       *int64     `json:"started"`   // with a page view
	Completed     *int64     `json:"completed"` // with a page view of the last page
	AtLeast       bool       `json:"at_least,omitempty"`
}

// EntriesOverview has counts of a project's entries by interval, for the period before, and for the 1,000 embeddables
// with the most entries. All counts are of the same moment.
type EntriesOverview struct {
	Intervals   []EntryCount         `json:"intervals"`
	Previous    *PreviousEntries     `json:"previous"`
	Embeddables []EmbeddableOverview `json:"embeddables"`
}

// PreviousEntries counts the entries of the period before the queried period, of the same length. A *PreviousEntries
// is nil if the queried period has no beginning.
type PreviousEntries struct {
	Entries   int64 `json:"entries"`
	Started   int64 `json:"started"`
	Completed int64 `json:"completed"`
}

// EmbeddableOverview has the counts of one embeddable's entries, and the page at which the largest share of entries
// stopped. LargestDrop is nil if there is no such page.
type EmbeddableOverview struct {
	EmbeddableID string           `json:"embeddable_id"`
	Entries      int64            `json:"entries"`
	Started      int64            `json:"started"`
	Completed    int64            `json:"completed"`
	Previous     *PreviousEntries `json:"previous"`
	LargestDrop  *LargestDrop     `json:"largest_drop"`
}

// LargestDrop is the page of an embeddable at which the largest share of the entries that reached the page came no
// further. Only pages that at least a tenth of the started entries reached count. Reached counts the entries that came
// to the page or to a later page. Dropped counts those entries among them that came no further.
type LargestDrop struct {
	PageIndex int64  `json:"page_index"`
	PageKey   string `json:"page_key"`
	Reached   int64  `json:"reached"`
	Dropped   int64  `json:"dropped"`
}

// Funnel is how many entries reached each page of an embeddable: all entries, or the entries with page views of one
// version. VersionNumber is nil for a funnel of all entries, or of the entries without a view of a version.
type Funnel struct {
	VersionNumber *int64       `json:"version_number"`
	Entries       int64        `json:"entries"`
	Started       int64        `json:"started"`
	Completed     int64        `json:"completed"`
	MedianSeconds *float64     `json:"median_seconds"` // from the first view to the first one of the last page
	Pages         []FunnelPage `json:"pages"`
}

// FunnelPage is one page of a [Funnel]. Reached counts the entries whose furthest page is this page or a later page.
// Dropped counts the entries whose furthest page is this page, but no entry for which this page is the last one.
// PageKey is the key of the page in the newest version.
type FunnelPage struct {
	PageIndex     int64    `json:"page_index"`
	PageKey       *string  `json:"page_key"`
	Reached       int64    `json:"reached"`
	Dropped       int64    `json:"dropped"`
	MedianSeconds *float64 `json:"median_seconds"` // from the page's first view to the next view of another
}

// AnswerKeys is the answer of [Client.AnswerKeys]: the most frequent top-level keys of entry_data, at most 1,000, with
// the number of entries that have each.
type AnswerKeys struct {
	Entries    int64       `json:"entries"`
	Unreadable int64       `json:"unreadable"`         // entries whose data the database cannot parse
	Previous   int64       `json:"previous,omitempty"` // the entries of the period before, if the query asks for them
	Keys       []AnswerKey `json:"keys"`
}

// AnswerKey is one top-level key of entry_data. Entries counts the entries that have the key, and Types the entries
// with a value of each JSON type. Distinct is "many" if nearly all values are different. Then Values has the latest
// values without counts, and Others counts all answers.
type AnswerKey struct {
	Key      string           `json:"key"`
	Entries  int64            `json:"entries"`
	Types    map[string]int64 `json:"types"`
	Distinct string           `json:"distinct"`

	// The following fields describe the key's values, as the fields of [Answers] do. Each field is nil unless the
	// query asks for values and the key is one of the first 100.
	None     *int64         `json:"none"`
	Multiple *int64         `json:"multiple"`
	Others   *int64         `json:"others"`
	Values   []AnswerValue  `json:"values"`
	Numbers  *AnswerNumbers `json:"numbers"`
}

// Answers is the answer of [Client.Answers]: the most frequent values of one key of entry_data, and how many entries
// have each. Previous counts the entries of the period before. Previous is 0 and Intervals is nil unless the query asks
// for them.
type Answers struct {
	Key        string           `json:"key"`
	Entries    int64            `json:"entries"`
	Unreadable int64            `json:"unreadable"`
	Previous   int64            `json:"previous,omitempty"`
	Intervals  []AnswerInterval `json:"intervals,omitempty"`
	None       int64            `json:"none"`     // entries without an answer: no key, null, white space, or an array of nothing else
	Multiple   int64            `json:"multiple"` // entries with an array, each of whose different elements counts
	Others     int64            `json:"others"`   // entries with a value that is not listed
	Values     []AnswerValue    `json:"values"`
	Numbers    *AnswerNumbers   `json:"numbers"` // nil without numbers
}

// AnswerValue is one value of a key, as JSON, with the number of entries that have the value. Entries is 0 if the value
// is one of the latest of a key whose Distinct is "many". Previous counts entries of the period before, and ByInterval
// the entries of each interval of the answer. Previous is 0 and ByInterval is nil unless the query asks for them.
type AnswerValue struct {
	Value      json.RawMessage `json:"value"`
	Entries    int64           `json:"entries"`
	Previous   int64           `json:"previous,omitempty"`
	ByInterval []int64         `json:"by_interval,omitempty"`
}

// AnswerInterval is the number of selected entries that were created in one interval.
type AnswerInterval struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"` // exclusive
	Entries int64     `json:"entries"`
}

// AnswerNumbers describes how the numbers among a key's values are distributed. Entries counts the entries with a
// number. Numbers beyond 1e±300 are left out.
type AnswerNumbers struct {
	Entries       int64       `json:"entries"`
	Minimum       float64     `json:"minimum"`
	LowerQuartile float64     `json:"lower_quartile"`
	Median        float64     `json:"median"`
	UpperQuartile float64     `json:"upper_quartile"`
	Maximum       float64     `json:"maximum"`
	Bins          []AnswerBin `json:"bins"`
}

// AnswerBin is one bar of a histogram: the number of entries with a number from From up to, but without, To. If all
// numbers are equal, their only bin includes To.
type AnswerBin struct {
	From    float64 `json:"from"`
	To      float64 `json:"to"`
	Entries int64   `json:"entries"`
}

// EntryCounts reads how many of projectID's entries were created in each interval, the oldest interval first. Rows
// without an interval come last.
func (c *Client) EntryCounts(ctx context.Context, projectID string, q CountQuery) ([]EntryCount, error) {
	return readOne[[]EntryCount](ctx, c, q.List(projectID))
}

// EntriesOverview reads counts of projectID's entries by interval and by embeddable, and counts of the period before.
func (c *Client) EntriesOverview(ctx context.Context, projectID string, q OverviewQuery) (EntriesOverview, error) {
	return readOne[EntriesOverview](ctx, c, q.List(projectID))
}

// Funnels reads the funnel of an embeddable. With q.ByVersion, the first funnel is that of entries without a view of a
// version, if there are any. One funnel for each version follows, in ascending order.
func (c *Client) Funnels(ctx context.Context, projectID string, q FunnelQuery) ([]Funnel, error) {
	return readOne[[]Funnel](ctx, c, q.List(projectID))
}

// AnswerKeys reads the top-level keys of entry_data in the selected entries, the most frequent first.
func (c *Client) AnswerKeys(ctx context.Context, projectID string, q AnswerQuery) (AnswerKeys, error) {
	q.Key, q.Interval = "", ""
	return readOne[AnswerKeys](ctx, c, q.List(projectID))
}

// Answers reads the most frequent values of the key q.Key of entry_data in the selected entries. q.Key must not be
// empty.
func (c *Client) Answers(ctx context.Context, projectID string, q AnswerQuery) (Answers, error) {
	q.Values = 0
	return readOne[Answers](ctx, c, q.List(projectID))
}
