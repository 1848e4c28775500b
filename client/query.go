package client

import (
	"fmt"
	"net/url"
	"reflect"
	"time"
)

// Direction is whether a list begins with the oldest or the newest record. The zero value is the server's default: the
// newest.
type Direction string

// The directions of a list: the oldest record first, or the newest record first.
const (
	Ascending  Direction = "ASC"
	Descending Direction = "DESC"
)

// Sort is the time by which entries are ordered. The zero value is the server's default: [ByUpdatedAt].
type Sort string

// The times by which entries can be ordered: the last update, or the creation.
const (
	ByUpdatedAt Sort = "updated_at"
	ByCreatedAt Sort = "created_at"
)

// Paging is the part of a query about pages: where the iteration over a list begins and ends, and how much each request
// reads.
type Paging struct {
	// Limit is the greatest number of records that the iteration returns; 0 is no limit.
	Limit int
	// PageSize is how many records one request asks for; 0 asks for DefaultPageSize.
	PageSize int
	// Cursor is the NextCursor of an earlier page of the same query. "" is the beginning of the list.
	Cursor string
}

// DefaultPageSize is how many records one request asks for if PageSize is 0.
const DefaultPageSize = 1000

// size returns how many records the next request asks for, when the iteration already has got records.
func (p Paging) size(got int) int {
	size := p.PageSize
	if size <= 0 {
		size = DefaultPageSize
	}
	if p.Limit > 0 {
		size = min(size, p.Limit-got)
	}
	return size
}

// The tag "query" of a field names the API's parameter that the field sets. A test compares the parameters of each
// query type with the published API description.

// EntryQuery selects the entries of a project that a list has, and their order. The zero value selects all entries,
// the last updated first.
type EntryQuery struct {
	Paging

	Sort      Sort      `query:"sort"`
	Direction Direction `query:"direction"`
	// CreatedAfter and CreatedBefore bound created_at, both exclusively; zero is no bound.
	CreatedAfter  time.Time `query:"created_after"`
	CreatedBefore time.Time `query:"created_before"`
	// UpdatedAfter and UpdatedBefore bound updated_at, both exclusively; zero is no bound.
	UpdatedAfter  time.Time `query:"updated_after"`
	UpdatedBefore time.Time `query:"updated_before"`
	// EmbeddableID, ContactID and GroupID select entries with exactly these ids; empty is any.
	EmbeddableID string `query:"embeddable_id"`
	ContactID    string `query:"contact_id"`
	GroupID      string `query:"group_id"`
	// Version selects entries with a page view of this version; nil selects entries of all versions. If Version is
	// set, Completed and FurthestPage only use the page views of the version.
	Version *int64 `query:"version"`
	// Completed selects entries with (true) or without (false) a page view of their last page; nil selects both.
	Completed *bool `query:"completed"`
	// FurthestPage selects entries whose furthest page has this index; nil selects all. A FurthestPage requires an
	// EmbeddableID.
	FurthestPage *int64 `query:"furthest_page"`
	// Answer selects entries with this value, or with an array that has this value, at a top-level key of entry_data.
	// AnswerKey, if set, is that key. Answer is JSON, as in [AnswerValue]; an empty Answer selects all.
	Answer    string `query:"answer"`
	AnswerKey string `query:"answer_key"`
	// Search selects entries in which each word of this text occurs in an answer or an id, in any letter case. A word
	// of digits also matches digits with blanks, brackets and hyphens between them. The text has 3 to 256 characters;
	// empty is any.
	Search string `query:"search"`
}

// EventQuery is the order and the paging of a list of one entry's events.
type EventQuery struct {
	Paging

	Direction Direction `query:"direction"`
}

// PageViewQuery selects the entries whose page views a list has, and their order. The zero value selects all entries.
type PageViewQuery struct {
	Paging

	Direction Direction `query:"direction"`
	// UpdatedAfter and UpdatedBefore bound the entry's updated_at, both exclusively; zero is no bound.
	UpdatedAfter  time.Time `query:"updated_after"`
	UpdatedBefore time.Time `query:"updated_before"`
	// EmbeddableID, ContactID and GroupID select entries with exactly these ids; empty is any.
	EmbeddableID string `query:"embeddable_id"`
	ContactID    string `query:"contact_id"`
	GroupID      string `query:"group_id"`
	// Version selects entries with a page view of this version; nil selects entries of all versions. If Version is
	// set, Completed and FurthestPage only use the page views of the version.
	Version *int64 `query:"version"`
	// Completed selects entries with (true) or without (false) a page view of their last page; nil selects both.
	Completed *bool `query:"completed"`
	// FurthestPage selects entries whose furthest page has this index; nil selects all. A FurthestPage requires an
	// EmbeddableID.
	FurthestPage *int64 `query:"furthest_page"`
	// IncludeURLs asks the server for the URL of each page view, which the server otherwise leaves out.
	IncludeURLs bool `query:"include_urls"`
}

// EmbeddableQuery selects the embeddables of a project that a list has. The list is always ordered by id.
type EmbeddableQuery struct {
	Paging

	// ChangedAfter selects embeddables that changed after the change of this number, themselves or in a version. The
	// number is the [Page.LastSeq] of an earlier page; nil selects all. If the server does not know the number any more,
	// the error is a [*HistoryLostError]: read the whole list.
	ChangedAfter *int64 `query:"changed_after"`
}

// VersionQuery selects the versions of one embeddable that a list has, and their order.
type VersionQuery struct {
	Paging

	Direction Direction `query:"direction"`
	// ChangedAfter selects versions that came after the change of this number, as in [EmbeddableQuery].
	ChangedAfter *int64 `query:"changed_after"`
}

// ExperimentQuery selects the experiments of a project that a list has. The list is always ordered by creation time,
// the newest first.
type ExperimentQuery struct {
	Paging

	// Status selects experiments with this status; the zero value selects experiments of all statuses.
	Status ExperimentStatus `query:"status"`
	// ChangedAfter selects experiments that changed after the change of this number, as in [EmbeddableQuery].
	ChangedAfter *int64 `query:"changed_after"`
}

// valuesOf returns the query parameters of query, a struct whose fields have the tag "query". Fields with the zero
// value set no parameter.
func valuesOf(query any) url.Values {
	v := url.Values{}
	addValues(v, reflect.ValueOf(query))
	return v
}

func addValues(v url.Values, query reflect.Value) {
	for field, value := range query.Fields() {
		name := field.Tag.Get("query")
		switch {
		case field.Anonymous:
			addValues(v, value)
		case name != "" && !value.IsZero():
			if text := textOf(reflect.Indirect(value).Interface()); text != "" {
				v.Set(name, text)
			}
		}
	}
}

// textOf returns a value in the form of the API's parameters. textOf returns "" for the zero time.
func textOf(value any) string {
	at, ok := value.(time.Time)
	switch {
	case !ok:
		return fmt.Sprint(value)
	case at.IsZero(): // in any location
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}
