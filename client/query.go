package client

import (
	"net/url"
	"strconv"
	"time"
)

// Direction is the order of a list. The zero value leaves it to the server: newest first.
type Direction string

// The directions.
const (
	Ascending  Direction = "ASC"
	Descending Direction = "DESC"
)

// Sort is the key by which entries are ordered. The zero value leaves it to the server: ByUpdatedAt.
type Sort string

// The sort keys.
const (
	ByUpdatedAt Sort = "updated_at"
	ByCreatedAt Sort = "created_at"
)

// Paging says how a list is walked. It is part of every query.
type Paging struct {
	// Limit ends the walk after so many records; 0 walks to the end.
	Limit int
	// PageSize is how many records one request asks for; 0 asks for DefaultPageSize.
	PageSize int
	// Cursor starts the walk where an earlier page of the same query ended.
	Cursor string
}

// DefaultPageSize is the number of records that one request asks for when a query does not say.
const DefaultPageSize = 1000

// size returns how many records to ask for when got were received already.
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
	// UpdatedAfter and UpdatedBefore bound updated_at, both exclusively; zero is no bound.
	UpdatedAfter, UpdatedBefore time.Time
	// EmbeddableID, ContactID and GroupID select entries with exactly these ids; empty is any.
	EmbeddableID, ContactID, GroupID string
}

func (q EntryQuery) values() url.Values {
	v := url.Values{}
	setString(v, "sort", string(q.Sort))
	setString(v, "direction", string(q.Direction))
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

// PageViewQuery selects the entries whose page views are read.
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

// EmbeddableQuery says how the embeddables are walked; they are always ordered by their id.
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

// ExperimentQuery selects experiments; they are always ordered by their creation, the newest first.
type ExperimentQuery struct {
	Paging
	// Status selects experiments that stand there; the zero value selects all.
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
