// Package api owns the routes and handlers of the embeddables service. The handlers read records through [Reader].
package api

import (
	"context"
	"net/http"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/postgres/changed"
	"github.com/lectern-dev/lectern/shared/postgres/lists"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// Reader is the part of the store that the handlers use.
type Reader interface {
	// View returns a view for the lists. The error may be a HistoryLost.
	View(ctx context.Context, projectID string, after int64) (changed.View, error)
	// Embeddables and Versions open a page of a list. The error of Versions may be an EmbeddableDoesNotExist.
	Embeddables(ctx context.Context, v changed.View, projectID string, page lists.Page) (*lists.List, error)
	Versions(ctx context.Context, v changed.View, projectID, embeddableID string, descending bool, page lists.Page) (*lists.List, error)
	// Embeddable returns one embeddable with its definition. The error is an EmbeddableDoesNotExist if there is none.
	Embeddable(ctx context.Context, projectID, embeddableID string, after int64) (embeddable.Document, error)
	// Version returns one version with its definition. The error is an EmbeddableVersionDoesNotExist if there is
	// none.
	Version(ctx context.Context, projectID, embeddableID string, number, after int64) (embeddable.Document, error)
}

// Config holds the limits of the requests that clients send, such as the greatest number of records in a page.
type Config struct {
	httpapi.Limits
}

// API has a handler for each read: operations 5 and 6 (the lists), one embeddable, and one version.
type API struct {
	cfg   Config
	store Reader
	build string
}

// Routes returns a router with every public route of the service. guard requires a key with the scope EmbeddablesRead.
// build names the build in the ETags of lists.
func Routes(cfg Config, store Reader, guard *auth.Guard, build string) *httpapi.Router {
	a := &API{cfg: cfg, store: store, build: build}
	read := func(h httpapi.HandlerFunc) httpapi.HandlerFunc { return guard.Protect(auth.EmbeddablesRead, h) }

	rt := httpapi.NewRouter()
	rt.Get("/projects/{projectId}/embeddables", read(a.listEmbeddables))
	rt.Get("/projects/{projectId}/embeddables/{embeddableId}", read(a.getEmbeddable))
	rt.Get("/projects/{projectId}/embeddables/{embeddableId}/versions", read(a.listVersions))
	rt.Get("/projects/{projectId}/embeddables/{embeddableId}/versions/{versionNumber}", read(a.getVersion))
	return rt
}

// listEmbeddables is operation 5: it answers with a page of a project's embeddables.
func (a *API) listEmbeddables(w http.ResponseWriter, r *http.Request) error {
	project, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, "limit", "cursor", "changed_after")
	binding := httpapi.Binding{Project: project, List: "embeddables", Sort: "embeddable_id"}
	after := q.ChangedAfter(&binding)
	start, end := embeddable.Bounds()
	l, err := q.List(r, binding, start, end, q.OptionalLimit(a.cfg.MaxLimit))
	if err != nil {
		return err
	}
	view, err := a.store.View(r.Context(), project, after)
	if err != nil || l.Unchanged(w, r, view.Newest, a.build) {
		return err
	}
	found, err := a.store.Embeddables(r.Context(), view, project, l.Page)
	if err != nil {
		return err
	}
	return l.Write(w, r, found)
}

// getEmbeddable answers with one embeddable and its definition.
func (a *API) getEmbeddable(w http.ResponseWriter, r *http.Request) error {
	project, id, err := embeddablePath(r)
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, "changed_after")
	after := q.ChangedAfter(&httpapi.Binding{})
	if q.Err() != nil {
		return q.Err()
	}
	d, err := a.store.Embeddable(r.Context(), project, id, after)
	if err != nil {
		return err
	}
	return a.writeDocument(w, r, d)
}

// listVersions is operation 6: it answers with a page of an embeddable's versions, without their definitions.
func (a *API) listVersions(w http.ResponseWriter, r *http.Request) error {
	project, id, err := embeddablePath(r)
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, "limit", "direction", "cursor", "changed_after")
	descending := q.Descending()
	binding := httpapi.Binding{
		Project: project, List: "embeddable-versions", Of: id, Sort: "version_number", Descending: descending,
		Most: embeddable.MaxVersion,
	}
	after := q.ChangedAfter(&binding)
	start, end := embeddable.VersionBounds(descending)
	l, err := q.List(r, binding, start, end, q.Limit(a.cfg.MaxLimit))
	if err != nil {
		return err
	}
	view, err := a.store.View(r.Context(), project, after)
	if err != nil || l.Unchanged(w, r, view.Newest, a.build) {
		return err
	}
	found, err := a.store.Versions(r.Context(), view, project, id, descending, l.Page)
	if err != nil {
		return err
	}
	return l.Write(w, r, found)
}

// getVersion answers with one version and its definition.
func (a *API) getVersion(w http.ResponseWriter, r *http.Request) error {
	project, id, err := embeddablePath(r)
	if err != nil {
		return err
	}
	number, err := httpapi.PathInt(r, "versionNumber")
	if err != nil {
		return err
	}
	q := httpapi.ParseQuery(r, "changed_after")
	after := q.ChangedAfter(&httpapi.Binding{})
	if q.Err() != nil {
		return q.Err()
	}
	d, err := a.store.Version(r.Context(), project, id, number, after)
	if err != nil {
		return err
	}
	return a.writeDocument(w, r, d)
}

func (a *API) writeDocument(w http.ResponseWriter, r *http.Request, d embeddable.Document) error {
	if d.Whole != nil {
		return httpapi.WriteBody(w, r, "application/json", d.Whole, "")
	}
	return httpapi.WritePieces(w, r, d.Name, d.Pieces)
}

func embeddablePath(r *http.Request) (project, id string, err error) {
	if project, err = httpapi.PathIdentifier(r, "projectId"); err != nil {
		return "", "", err
	}
	id, err = httpapi.PathIdentifier(r, "embeddableId")
	return project, id, err
}
