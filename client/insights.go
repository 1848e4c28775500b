package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// InsightFilter selects the entries of an insight.
type InsightFilter struct {
	// EmbeddableID selects entries of one embeddable; empty is any. A funnel and answers need one.
	EmbeddableID string `query:"embeddable_id"`
	// CreatedAfter and CreatedBefore bound created_at, and the next two updated_at, all exclusively; zero is no bound.
	CreatedAfter  time.Time `query:"created_after"`
	CreatedBefore time.Time `query:"created_before"`
	UpdatedAfter  time.Time `query:"updated_after"`
	UpdatedBefore time.Time `query:"updated_before"`
	// Version selects entries with a page view of this version; nil is any.
	Version *int64 `query:"version"`
}

// CountQuery asks how many entries were created in each interval.
type CountQuery struct {
	InsightFilter

	// Interval is day, week, month or all. Empty is day.
	Interval string `query:"interval"`
	// By splits the rows: none, embeddable or version. Empty is none.
	By string `query:"by"`
	// Timezone is the IANA name of the time zone in which days begin. Empty is UTC.
	Timezone string `query:"timezone"`
}

// List returns the counts of projectID's entries, for [Client.JSON].
func (q CountQuery) List(projectID string) List {
	return List{path("projects", projectID, "entries-counts"), valuesOf(q)}
}

// FunnelQuery asks how far the entries of an embeddable came.
type FunnelQuery struct {
	InsightFilter

	// ByVersion asks for a funnel of each version.
	ByVersion bool
}

// List returns the funnels of projectID, for [Client.JSON].
func (q FunnelQuery) List(projectID string) List {
	v := valuesOf(q)
	if q.ByVersion {
		v.Set("by", "version")
	}
	return List{path("projects", projectID, "entries-funnel"), v}
}

// AnswerQuery asks for the keys of entry_data, or for the values of one key.
type AnswerQuery struct {
	InsightFilter

	// Key is a top-level key of entry_data. [Client.AnswerKeys] ignores it.
	Key string `query:"key"`
}

// List returns the keys or values of projectID, for [Client.JSON]. Its body is one object.
func (q AnswerQuery) List(projectID string) List {
	return List{path("projects", projectID, "entries-answers"), valuesOf(q)}
}

// EntryCount has the entries that were created in an interval. From and To are nil for entries whose clocks are outside of
// the years 2000 to 2100.
type EntryCount struct {
	From          *time.Time `json:"from"`
	To            *time.Time `json:"to"` // exclusive
	EmbeddableID  *string    `json:"embeddable_id"`
	VersionNumber *int64     `json:"version_number"`
	Entries       int64      `json:"entries"`
	Started       int64      `json:"started"`   // with a page view
	Completed     int64      `json:"completed"` // with a page view of the last page
}

// Funnel shows how far entries came: all, or those with views of one version.
type Funnel struct {
	VersionNumber *int64       `json:"version_number"`
	Entries       int64        `json:"entries"`
	Started       int64        `json:"started"`
	Completed     int64        `json:"completed"`
	MedianSeconds *float64     `json:"median_seconds"` // from the first view to the first one of the last page
	Pages         []FunnelPage `json:"pages"`
}

// FunnelPage is one page of a funnel.
type FunnelPage struct {
	PageIndex     int64    `json:"page_index"`
	PageKey       *string  `json:"page_key"`
	Reached       int64    `json:"reached"`
	Dropped       int64    `json:"dropped"`
	MedianSeconds *float64 `json:"median_seconds"` // from the page's first view to the next view of another
}

// AnswerKeys has the top-level keys of entry_data.
type AnswerKeys struct {
	Entries    int64       `json:"entries"`
	Unreadable int64       `json:"unreadable"` // entries whose data the database cannot parse
	Keys       []AnswerKey `json:"keys"`
}

// AnswerKey is one key. Types has how many entries have a value of each JSON type.
type AnswerKey struct {
	Key     string           `json:"key"`
	Entries int64            `json:"entries"`
	Types   map[string]int64 `json:"types"`
}

// Answers has the most frequent values of one key.
type Answers struct {
	Key        string         `json:"key"`
	Entries    int64          `json:"entries"`
	Unreadable int64          `json:"unreadable"`
	None       int64          `json:"none"`     // entries without an answer: no key, null, white space, or an array of nothing else
	Multiple   int64          `json:"multiple"` // entries with an array, each of whose different elements counts
	Others     int64          `json:"others"`   // entries with a value that is not listed
	Values     []AnswerValue  `json:"values"`
	Numbers    *AnswerNumbers `json:"numbers"` // nil if no value is a number
}

// AnswerValue is one value in JSON.
type AnswerValue struct {
	Value   json.RawMessage `json:"value"`
	Entries int64           `json:"entries"`
}

// AnswerNumbers is the distribution of the values that are numbers.
type AnswerNumbers struct {
	Entries       int64       `json:"entries"`
	Minimum       float64     `json:"minimum"`
	LowerQuartile float64     `json:"lower_quartile"`
	Median        float64     `json:"median"`
	UpperQuartile float64     `json:"upper_quartile"`
	Maximum       float64     `json:"maximum"`
	Bins          []AnswerBin `json:"bins"`
}

// AnswerBin counts the numbers from From up to To. The last bin includes To.
type AnswerBin struct {
	From    float64 `json:"from"`
	To      float64 `json:"to"`
	Entries int64   `json:"entries"`
}

// EntryCounts reads how many entries were created in each interval, the oldest first.
func (c *Client) EntryCounts(ctx context.Context, projectID string, q CountQuery) ([]EntryCount, error) {
	return readInsight[[]EntryCount](ctx, c, q.List(projectID))
}

// Funnels reads one funnel, or one for each version, in ascending order.
func (c *Client) Funnels(ctx context.Context, projectID string, q FunnelQuery) ([]Funnel, error) {
	return readInsight[[]Funnel](ctx, c, q.List(projectID))
}

// AnswerKeys reads the keys of entry_data, the most frequent first.
func (c *Client) AnswerKeys(ctx context.Context, projectID string, q AnswerQuery) (AnswerKeys, error) {
	q.Key = ""
	return readInsight[AnswerKeys](ctx, c, q.List(projectID))
}

// Answers reads the values of one key.
func (c *Client) Answers(ctx context.Context, projectID string, q AnswerQuery) (Answers, error) {
	return readInsight[Answers](ctx, c, q.List(projectID))
}

func readInsight[T any](ctx context.Context, c *Client, of List) (answer T, err error) {
	body, _, err := c.JSON(ctx, of, "", 0)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return answer, fmt.Errorf("the answer of %s: %w", of.path, err)
	}
	return answer, nil
}
