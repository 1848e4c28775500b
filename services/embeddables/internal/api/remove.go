package api

import (
	"context"
	"net/http"

	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// Remover is the part of the store that removals use.
type Remover interface {
	// Project removes everything that the service holds about a project, or a part of it if there is much.
	Project(ctx context.Context, projectID string) (embeddable.Removed, error)
}

// AddRemoval adds the route under /internal that removes a project.
func AddRemoval(rt *httpapi.Router, store Remover, p *service.Parts) {
	rt.Handle("/internal/projects/{projectId}", map[string]http.Handler{
		http.MethodDelete: p.ProjectRemoval(func(ctx context.Context, projectID string) (any, error) {
			return store.Project(ctx, projectID)
		}),
	})
}
