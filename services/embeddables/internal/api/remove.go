package api

import (
	"context"
	"net/http"

	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// Remover is what the removal needs of the store.
type Remover interface {
	// Project removes all that the service holds of a project, or a part if it is much.
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
