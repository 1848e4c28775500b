package api

import (
	"context"

	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/service"
)

// Remover is the part of the store that deletes projects.
type Remover interface {
	// DeleteProject deletes a project, and reports whether it was known.
	DeleteProject(ctx context.Context, id string) (deleted bool, err error)
}

// removed counts the removed project and its revoked keys, for the answer and the audit line.
type removed struct {
	Keys     int `json:"keys"` // revoked keys
	Projects int `json:"projects"`
}

// AddRemoval adds DELETE /internal/projects/{projectId}, which revokes all keys of a project and then deletes the
// project. If p.KeyAdmin is nil, the route answers Unavailable and changes nothing.
func AddRemoval(rt *httpapi.Router, store Remover, p *service.Parts) {
	service.AddProjectRemoval(rt, p, func(ctx context.Context, id string) (any, error) {
		if p.KeyAdmin == nil {
			return nil, errNoKeyAdmin
		}
		var r removed
		err := revokeKeys(ctx, p.KeyAdmin, id, &r)
		if err != nil {
			return r, err
		}
		deleted, err := store.DeleteProject(ctx, id)
		if deleted {
			r.Projects = 1
		}
		return r, err
	})
}

// revokeKeys revokes the keys of a project that are not revoked yet, and adds their number to r, even if it fails in
// the middle. The records of the revoked keys stay.
func revokeKeys(ctx context.Context, admin *authn.Admin, projectID string, r *removed) error {
	found, err := admin.List(ctx, projectID)
	if err != nil {
		return err
	}
	for i := range found {
		if !found[i].RevokedAt.IsZero() {
			continue
		}
		if _, err := admin.Revoke(ctx, projectID, found[i].ID); err != nil {
			return err
		}
		r.Keys++
	}
	return nil
}
