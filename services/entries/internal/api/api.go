// Package api owns the routes and handlers of the entries service. The package reads records from the store through
// [Reader], and insights through [Insights].
package api

import (
	"context"
	"fmt"
	"math"
	"net/http"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// Reader is the part of the store from which the handlers read single entries, lists and the change feed.
type Reader interface {
	// Entry returns one entry as JSON. The error is an EntryNotFound if the project has no such entry.
	Entry(ctx context.Context, projectID, entryID string) ([]byte, error)
	// Entries, PageViews and Events open a page of a list. The error of Events may be an EntryNotFound.
	Entries(ctx context.Context, l entry.List, page lists.Page) (*lists.List, error)
	PageViews(ctx context.Context, l entry.List, page lists.Page) (*lists.List, error)
	Events(ctx context.Context, projectID, entryID string, descending bool, page lists.Page) (*lists.List, error)
	// Changes opens a page of the change feed.
	Changes(ctx context.Context, ask change.Ask) (*change.Page, error)
	// LastSeq returns the number of the project's newest change, or 0 if the project has no changes.
	LastSeq(ctx context.Context, projectID string) (int64, error)
}

// Config limits the requests of clients: the length of a page, and how many requests may wait for changes.
type Config struct {
	httpapi.Limits

	limits.WaitOptions
}

// Options holds the settings and the dependencies that [Routes] needs. All fields are required.
type Options struct {
	Config Config
	Store  Reader
	// Insights returns a reader for one request, whose answers are not older than the result of an earlier call of
	// Version.
	Insights func() Insights
	Guard    *auth.Guard
	Watch    Watch
	Waits    *limits.Pool // requests that wait for changes
	// Build names the build in the ETags of insights, so that a corrected computation gets other ETags.
	Build string
	// Stopping is a context that ends when the service shuts down. Requests that wait for changes are then answered
	// at once.
	Stopping context.Context
}

// API has the handlers of all public routes of the service: lists, single entries, the change feed and the insights.
type API struct {
	cfg      Config
	store    Reader
	insights func() Insights
	watch    Watch
	guard    *auth.Guard
	waits    *limits.Pool
	build    string
	stopping context.Context
}

// Routes returns a router with every public route of the service. Each route requires a key with the scope
// entries:read.
func Routes(o Options) *httpapi.Router {
	a := &API{cfg: o.Config, store: o.Store, insights: o.Insights, watch: o.Watch, guard: o.Guard, waits: o.Waits, build: o.Build, stopping: o.Stopping}
	guard := o.Guard
	read := func(h httpapi.HandlerFunc) httpapi.HandlerFunc { return guard.Protect(auth.EntriesRead, h) }

	rt := httpapi.NewRouter()
	rt.Get("/projects/{projectId}/entries", read(a.listEntries))
	rt.Get("/projects/{projectId}/entries/{entryId}", read(a.getEntry))
	rt.Get("/projects/{projectId}/entries/{entryId}/events", read(a.listEvents))
	rt.Get("/projects/{projectId}/entries-page-views", read(a.listPageViews))
	rt.Get("/projects/{projectId}/entries-changes", read(a.listChanges))
	rt.Get("/projects/{projectId}/entries-counts", read(a.counts))
	rt.Get("/projects/{projectId}/entries-overview", read(a.overview))
	rt.Get("/projects/{projectId}/entries-funnel", read(a.funnel))
	rt.Get("/projects/{projectId}/entries-answers", read(a.answers))
	return rt
}

// The names of the query parameters that the lists with filters accept: the filters and the other parameters.
var (
	entryParameters    = parameters(entry.ListEntries, "limit", "sort", "direction", "cursor")
	pageViewParameters = parameters(entry.ListPageViews, "limit", "direction", "include_urls", "cursor")
)

// listEntries serves GET /projects/{projectId}/entries: a page of a project's entries, with filters.
func (a *API) listEntries(w http.ResponseWriter, r *http.Request) error {
	project, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, entryParameters...)
	which := readList(q, project, entry.ListEntries)
	if q.Enum("sort", "updated_at", "updated_at", "last_updated", "created_at") == "created_at" {
		which.Sort = entry.ByCreatedAt
	}
	l, err := a.page(r, q, "entries", which)
	if err != nil {
		return err
	}
	found, err := a.store.Entries(r.Context(), which, l.Page)
	if err != nil {
		return err
	}
	return l.Write(w, r, found)
}

// getEntry serves GET /projects/{projectId}/entries/{entryId}: one entry.
func (a *API) getEntry(w http.ResponseWriter, r *http.Request) error {
	project, id, err := entryPath(r)
	if err != nil {
		return err
	}
	if err := httpapi.ParseQuery(r).Err(); err != nil {
		return err
	}
	body, err := a.store.Entry(r.Context(), project, id)
	if err != nil {
		return err
	}
	return httpapi.WriteBody(w, r, "application/json", body, "")
}

// listEvents serves GET /projects/{projectId}/entries/{entryId}/events: a page of an entry's events, by timestamp.
func (a *API) listEvents(w http.ResponseWriter, r *http.Request) error {
	project, id, err := entryPath(r)
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, "limit", "direction", "cursor")
	descending := q.Descending()
	start, end := entry.EventBounds(descending)
	l, err := q.List(r, httpapi.Binding{
		Project: project, List: "events", Of: id, Sort: "timestamp", Descending: descending,
		Least: wire.MinTime, Most: wire.MaxTime,
	}, start, end, q.Limit(a.cfg.MaxLimit))
	if err == nil && !entry.ValidArrival(l.Page.After) {
		q.Fail("cursor", "the cursor of the previous answer")
		err = q.Err()
	}
	if err != nil {
		return err
	}
	found, err := a.store.Events(r.Context(), project, id, descending, l.Page)
	if err != nil {
		return err
	}
	return l.Write(w, r, found)
}

// listPageViews serves GET /projects/{projectId}/entries-page-views: a page of entries with filters, each entry with
// its page views.
func (a *API) listPageViews(w http.ResponseWriter, r *http.Request) error {
	project, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, pageViewParameters...)
	which := readList(q, project, entry.ListPageViews)
	which.IncludeURLs = q.Bool("include_urls", false)
	l, err := a.page(r, q, "entries-page-views", which)
	if err != nil {
		return err
	}
	found, err := a.store.PageViews(r.Context(), which, l.Page)
	if err != nil {
		return err
	}
	return l.Write(w, r, found)
}

// parameters returns the names in own, followed by the parameters of the filters that the given operations have.
func parameters(of entry.Operations, own ...string) []string {
	for f := range entry.Filters(of) {
		own = append(own, f.Parameter)
	}
	return own
}

// readFilters reads the filters of an operation from q, and returns a condition for each filter that the request sets.
// Faults in the values are recorded in q. A request that sets furthest_page must also set embeddable_id.
func readFilters(q *httpapi.Query, of entry.Operations) (set []entry.Condition) {
	if q.Has("furthest_page") {
		needEmbeddable(q) // the same index is a different page in another embeddable
	}
	for f := range entry.Filters(of) {
		if !q.Has(f.Parameter) {
			continue
		}
		c := entry.Condition{Filter: f}
		switch f.Kind {
		case entry.Equal:
			c.Value = q.Identifier(f.Parameter)
		case entry.After, entry.Before:
			c.Value = q.Time(f.Parameter, 0)
		case entry.Is:
			c.Value = q.Bool(f.Parameter, false)
		case entry.Answers:
			c.Value = readAnswer(q, f.Parameter)
		case entry.AnswerKey:
			if c.Value = q.Identifier(f.Parameter); !q.Has("answer") {
				q.Fail("answer", "JSON, because answer_key is the key of an answer")
			}
		case entry.Contains:
			c.Value = readSearch(q, f.Parameter)
		case entry.Number:
			c.Value = int64(q.Int(f.Parameter, 0, math.MinInt64, math.MaxInt64))
		}
		set = append(set, c)
	}
	return set
}

// readList reads the filters and the direction of a list from q, and records faults in q.
func readList(q *httpapi.Query, project string, of entry.Operations) entry.List {
	return entry.List{
		Selection:  entry.Selection{ProjectID: project, Conditions: readFilters(q, of)},
		Descending: q.Descending(),
	}
}

// page reads from q which page of the list l the client asks for. name is the name of the list in cursors. The error is
// the first fault that is recorded in q.
func (a *API) page(r *http.Request, q *httpapi.Query, name string, l entry.List) (httpapi.ListRequest, error) {
	filters := make(map[string]string, len(l.Conditions))
	for _, c := range l.Conditions {
		filters[c.Parameter] = fmt.Sprint(c.Value) // not the text of the request: a time has several spellings
	}
	start, end := l.Bounds()
	return q.List(r, httpapi.Binding{
		Project: l.ProjectID, List: name, Sort: l.Sort.String(), Descending: l.Descending, Filters: filters,
		Least: wire.MinTime, Most: wire.MaxTime,
	}, start, end, q.Limit(a.cfg.MaxLimit))
}

func entryPath(r *http.Request) (project, id string, err error) {
	if project, err = httpapi.PathIdentifier(r, "projectId"); err != nil {
		return "", "", err
	}
	id, err = httpapi.PathIdentifier(r, "entryId")
	return project, id, err
}
