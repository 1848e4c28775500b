package client

import (
	"net/url"
	"strconv"
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

// EntryQuery selects entries.
type EntryQuery struct {
	Paging
	Sort      Sort
	Direction Direction
	// CreatedAfter and CreatedBefore bound created_at, both exclusively; zero is no bound.
	CreatedAfter, CreatedBefore time.Time
	// UpdatedAfter and UpdatedBefore bound updated_at, both exclusively; zero is no bound.
	UpdatedAfter, UpdatedBefore time.Time
	// EmbeddableID, ContactID and GroupID select entries with exactly these ids; empty is any.
	EmbeddableID, ContactID, GroupID string
}

func (q EntryQuery) values() url.Values {
	v := url.Values{}
	setString(v, "sort", string(q.Sort))
	setString(v, "direction", string(q.Direction))
	setTime(v, "created_after", q.CreatedAfter)
	setTime(v, "created_before", q.CreatedBefore)
	setTime(v, "updated_after", q.UpdatedAfter)
	setTime(v, "updated_before", q.UpdatedBefore)
	setString(v, "embeddable_id", q.EmbeddableID)
	setString(v, "contact_id", q.ContactID)
	setString(v, "group_id", q.GroupID)
	return v
}

// EventQuery selects events of one entry.
type EventQuery struct {
	Paging
	Direction Direction
}

func (q EventQuery) values() url.Values {
	v := url.Values{}
	setString(v, "direction", string(q.Direction))
	return v
}

// PageViewQuery selects entries for a list of page views.
type PageViewQuery struct {
	Paging
	Direction Direction
	// UpdatedAfter and UpdatedBefore bound the entry's updated_at, both exclusively; zero is no bound.
	UpdatedAfter, UpdatedBefore time.Time
	// EmbeddableID, ContactID and GroupID select entries with exactly these ids; empty is any.
	EmbeddableID, ContactID, GroupID string
	// IncludeURLs asks for the URL of each page view.
	IncludeURLs bool
}

func (q PageViewQuery) values() url.Values {
	v := url.Values{}
	setString(v, "direction", string(q.Direction))
	setTime(v, "updated_after", q.UpdatedAfter)
	setTime(v, "updated_before", q.UpdatedBefore)
	setString(v, "embeddable_id", q.EmbeddableID)
	setString(v, "contact_id", q.ContactID)
	setString(v, "group_id", q.GroupID)
	if q.IncludeURLs {
		v.Set("include_urls", "true")
	}
	return v
}

// EmbeddableQuery controls the iteration over embeddables, which are always ordered by id.
type EmbeddableQuery struct {
	Paging
}

// VersionQuery selects versions of one embeddable.
type VersionQuery struct {
	Paging
	Direction Direction
}

func (q VersionQuery) values() url.Values {
	v := url.Values{}
	setString(v, "direction", string(q.Direction))
	return v
}

// ExperimentQuery selects experiments, which are always ordered by creation time, the newest first.
type ExperimentQuery struct {
	Paging
	// Status selects experiments with this status; the zero value selects all.
	Status ExperimentStatus
}

func (q ExperimentQuery) values() url.Values {
	v := url.Values{}
	setString(v, "status", string(q.Status))
	return v
}

func setString(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

func setTime(v url.Values, name string, t time.Time) {
	if !t.IsZero() {
		v.Set(name, t.UTC().Format(time.RFC3339Nano))
	}
}

func setInt(v url.Values, name string, n int) { v.Set(name, strconv.Itoa(n)) }
