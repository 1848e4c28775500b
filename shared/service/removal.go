package service

import (
	"context"
	"net/http"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// Removal returns the handler of an operation that removes data. The handler admits only administrators, and answers
// with the result of remove, a struct of numbers. The audit line has the action and the result, even if remove fails
// after it removed a part. Without REMOVE_DATABASE_URL, the handler answers Unavailable.
func (p *Parts) Removal(action string, remove func(w http.ResponseWriter, r *http.Request) (removed any, err error)) httpapi.HandlerFunc {
	return p.AdminKeys.Protect(action, func(w http.ResponseWriter, r *http.Request, act *auth.Act) (err error) {
		if p.Remove == nil {
			return apierr.New(apierr.Unavailable, "This service cannot remove data: REMOVE_DATABASE_URL is not set.")
		}
		if act.Removed, err = remove(w, r); err != nil {
			return err
		}
		return httpapi.WriteJSON(w, act.Removed)
	})
}

// AddProjectRemoval adds DELETE /internal/projects/{projectId}, for administrators, which removes the data that the
// service holds about a project. If there is much data, one request may remove only a part.
func AddProjectRemoval[T any](rt *httpapi.Router, p *Parts, remove func(ctx context.Context, projectID string) (removed T, err error)) {
	h := p.Removal("project.remove", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		project, err := httpapi.PathIdentifier(r, "projectId")
		if err != nil {
			return nil, err
		}
		if err := httpapi.ParseQuery(r).Err(); err != nil {
			return nil, err
		}
		return remove(r.Context(), project)
	})
	rt.Handle("/internal/projects/{projectId}", map[string]http.Handler{http.MethodDelete: h})
}
