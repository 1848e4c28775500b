package client

import (
	"fmt"
	"net/url"
	"reflect"
	"time"
)

// Direction is the order of a list. The zero value is the server's default: newest first.
type Direction string

// The directions.
const (
	Ascending  Direction = "ASC"
	Descending Direction = "DESC"
)

// Sort is the key by which entries are ordered. The zero value is the server's default: ByUpdatedAt.
type Sort string

// The sort keys.
const (
	ByUpdatedAt Sort = "updated_at"
	ByCreatedAt Sort = "created_at"
)

// Paging controls the iteration over a list. It is part of every query.
type Paging struct {
	// Limit bounds the number of records; 0 is no limit.
	Limit int
	// PageSize is how many records one request asks for; 0 asks for DefaultPageSize.
	PageSize int
	// Cursor continues after an earlier page of the same query.
	Cursor string
}

// DefaultPageSize is the number of records that one request asks for by default.
const DefaultPageSize = 1000

// size returns how many records to ask for after got records.
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

// The tag query of a field names the parameter of the API that the field sets. A test compares the parameters of each query with
// the published description.

// EntryQuery selects entries.
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
	// Completed selects entries with a page view of their last page, or those without; nil is any.
	Completed *bool `query:"completed"`
}

// EventQuery selects events of one entry.
type EventQuery struct {
	Paging

	Direction Direction `query:"direction"`
}

// PageViewQuery selects entries for a list of page views.
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
	// Completed selects entries with a page view of their last page, or those without; nil is any.
	Completed *bool `query:"completed"`
	// IncludeURLs asks for the URL of each page view.
	IncludeURLs bool `query:"include_urls"`
}

// EmbeddableQuery controls the iteration over embeddables, which are always ordered by id.
type EmbeddableQuery struct {
	Paging
}

// VersionQuery selects versions of one embeddable.
type VersionQuery struct {
	Paging

	Direction Direction `query:"direction"`
}

// ExperimentQuery selects experiments, which are always ordered by creation time, the newest first.
type ExperimentQuery struct {
	Paging

	// Status selects experiments with this status; the zero value selects all.
	Status ExperimentStatus `query:"status"`
}

// valuesOf returns the parameters that a query sets: those of its fields that are not zero.
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

// textOf returns a value as the API reads it, or "" for no time.
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
