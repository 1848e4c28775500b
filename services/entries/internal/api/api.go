// Package api owns the service's routes and handlers. It reads records from the store through [Reader].
package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/lectern-dev/lectern/shared/admission"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/pagelist"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// Reader is the part of the store that the handlers use.
type Reader interface {
	// Entry returns one entry as JSON. The error is an EntryNotFound if there is none.
	Entry(ctx context.Context, projectID, entryID string) ([]byte, error)
	// Entries, PageViews and Events open a page of a list. The error of Events may be an EntryNotFound.
	Entries(ctx context.Context, l entry.List, page pagelist.Page) (*pagelist.List, error)
	PageViews(ctx context.Context, l entry.List, page pagelist.Page) (*pagelist.List, error)
	Events(ctx context.Context, projectID, entryID string, descending bool, page pagelist.Page) (*pagelist.List, error)
	// Changes opens a page of the change feed.
	Changes(ctx context.Context, ask change.Ask) (*change.Page, error)
	// LastSeq reads the newest number of a project's changes; 0 for none.
	LastSeq(ctx context.Context, projectID string) (int64, error)
}

// Config bounds the requests of clients.
type Config struct {
	httpapi.Limits

	admission.WaitOptions
}

// Options holds what Routes needs.
type Options struct {
	Config Config
	Store  Reader
	// Insights returns a reader for one request, which keeps reading from one database.
	Insights func() Insights
	Guard    *auth.Guard
	Watch    Watch
	Waits    *admission.Pool // requests that wait for changes
	// Build names the build in the ETags of insights, so that a corrected computation makes new ones.
	Build string
	// Stopping ends when requests that wait for changes should end.
	Stopping context.Context
}

// API serves operations 1 to 4, the change feed and the insights.
type API struct {
	cfg      Config
	store    Reader
	insights func() Insights
	watch    Watch
	guard    *auth.Guard
	waits    *admission.Pool
	build    string
	stopping context.Context
}

// Routes lists every public route of the service.
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
	rt.Get("/projects/{projectId}/entries-funnel", read(a.funnel))
	rt.Get("/projects/{projectId}/entries-answers", read(a.answers))
	return rt
}

// The parameters of the lists that have filters.
var (
	entryParameters    = parameters(entry.ListEntries, "limit", "sort", "direction", "cursor")
	pageViewParameters = parameters(entry.ListPageViews, "limit", "direction", "include_urls", "cursor")
)

// listEntries is operation 1.
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

// getEntry is operation 2.
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

// listEvents is operation 3.
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

// listPageViews is operation 4.
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

// parameters returns the names of the filters of an operation, and of its own parameters.
func parameters(of entry.Operations, own ...string) []string {
	for f := range entry.Filters(of) {
		own = append(own, f.Parameter)
	}
	return own
}

// readFilters reads the filters of an operation, and returns those that the request sets.
func readFilters(q *httpapi.Query, of entry.Operations) (set []entry.Condition) {
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
		}
		set = append(set, c)
	}
	return set
}

// readList reads the parameters that the lists of entries and of page views have in common.
func readList(q *httpapi.Query, project string, of entry.Operations) entry.List {
	return entry.List{
		Selection:  entry.Selection{ProjectID: project, Conditions: readFilters(q, of)},
		Descending: q.Descending(),
	}
}

// page reads which part of the list the client asks for.
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
