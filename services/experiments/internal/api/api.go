// Package api owns the routes and handlers of the experiments service. The package reads records from the store
// through [Reader].
package api

import (
	"context"
	"net/http"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/postgres/changed"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/experiments/internal/experiment"
)

// Reader is the part of the store that the handlers use.
type Reader interface {
	// View returns a view for the list of experiments. The error may be a HistoryLost.
	View(ctx context.Context, projectID string, after int64) (changed.View, error)
	// Experiments opens a page of a project's experiments.
	Experiments(ctx context.Context, v changed.View, l experiment.List, page lists.Page) (*lists.List, error)
	// Experiment returns one experiment as JSON. The error is an ExperimentNotFound if the project has no such
	// experiment.
	Experiment(ctx context.Context, projectID, experimentID string) ([]byte, error)
	// StatusChanges opens a page of the changes of an experiment's status. The error may be an ExperimentNotFound.
	StatusChanges(ctx context.Context, projectID, experimentID string, after int64, page lists.Page) (*lists.List, error)
}

// API has the handlers of all public routes of the service: lists, single experiments and the history of an
// experiment.
type API struct {
	cfg   Config
	store Reader
	build string
}

// Routes returns a router with every public route of the service. EXPERIMENTS_AUTH decides whether the routes require
// a key. build names the build in the ETag of the list.
func Routes(cfg Config, store Reader, guard *auth.Guard, build string) *httpapi.Router {
	a := &API{cfg: cfg, store: store, build: build}
	read := func(h httpapi.HandlerFunc) httpapi.HandlerFunc { return cfg.protect(guard, h) }

	rt := httpapi.NewRouter()
	rt.Get("/projects/{projectId}/experiments", read(a.listExperiments))
	rt.Get("/projects/{projectId}/experiments/{experimentId}", read(a.getExperiment))
	rt.Get("/projects/{projectId}/experiments/{experimentId}/history", read(a.listStatusChanges))
	return rt
}

// listExperiments serves GET /projects/{projectId}/experiments: a page of a project's experiments, the newest first. If
// the request sets no limit, the page has all experiments.
func (a *API) listExperiments(w http.ResponseWriter, r *http.Request) error {
	project, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, "status", "limit", "cursor", "changed_after")
	which := experiment.List{ProjectID: project, Status: q.Enum("status", "", experiment.Statuses()...)}
	filters := map[string]string{}
	if which.Status != "" {
		filters["status"] = which.Status
	}
	binding := httpapi.Binding{
		Project: project, List: "experiments", Sort: "created_at", Descending: true, Filters: filters,
		Least: wire.MinTime, Most: wire.MaxTime,
	}
	after := q.ChangedAfter(&binding)
	start, end := experiment.Bounds()
	l, err := q.List(r, binding, start, end, q.OptionalLimit(a.cfg.MaxLimit))
	if err != nil {
		return err
	}
	view, err := a.store.View(r.Context(), project, after)
	if err != nil || l.Unchanged(w, r, view.Newest, a.build) {
		return err
	}
	found, err := a.store.Experiments(r.Context(), view, which, l.Page)
	if err != nil {
		return err
	}
	return l.Write(w, r, found)
}

// getExperiment serves GET /projects/{projectId}/experiments/{experimentId}: one experiment.
func (a *API) getExperiment(w http.ResponseWriter, r *http.Request) error {
	project, id, err := experimentPath(r)
	if err != nil {
		return err
	}
	if err := httpapi.ParseQuery(r).Err(); err != nil {
		return err
	}
	body, err := a.store.Experiment(r.Context(), project, id)
	if err != nil {
		return err
	}
	return httpapi.WriteBody(w, r, "application/json", body, "")
}

// listStatusChanges serves GET /projects/{projectId}/experiments/{experimentId}/history: all changes of the
// experiment's status, the oldest first.
func (a *API) listStatusChanges(w http.ResponseWriter, r *http.Request) error {
	project, id, err := experimentPath(r)
	if err != nil {
		return err
	}
	start, end := experiment.ChangeBounds()
	q := httpapi.ParseQuery(r, "changed_after")
	after := q.ChangedAfter(&httpapi.Binding{})
	l, err := q.List(r, httpapi.Binding{}, start, end, lists.All)
	if err != nil {
		return err
	}
	found, err := a.store.StatusChanges(r.Context(), project, id, after, l.Page)
	if err != nil {
		return err
	}
	return l.Write(w, r, found)
}

func experimentPath(r *http.Request) (project, id string, err error) {
	if project, err = httpapi.PathIdentifier(r, "projectId"); err != nil {
		return "", "", err
	}
	id, err = httpapi.PathIdentifier(r, "experimentId")
	return project, id, err
}
