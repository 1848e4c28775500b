package api

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// Purger is the part of the store that removes what nothing refers to.
type Purger interface {
	// PurgeDefinitions removes definitions to which no embeddable and no version refers. One call removes only a part if
	// there are many. A call that fails midway still returns how many it removed.
	PurgeDefinitions(ctx context.Context, projectID string) (embeddable.PurgedDefinitions, error)
	// UnreferencedDefinitions returns how many definitions PurgeDefinitions would remove.
	UnreferencedDefinitions(ctx context.Context, projectID string) (embeddable.PurgedDefinitions, error)
}

// purged is the answer to a purge.
type purged struct {
	embeddable.PurgedDefinitions
	DryRun bool `json:"dry_run,omitzero"`
}

// AddPurge adds the route under /internal by which administrators remove definitions to which nothing refers.
func AddPurge(rt *httpapi.Router, store Purger, p *service.Parts) {
	rt.Post("/internal/projects/{projectId}/definitions/purge", p.Removal("definitions.purge", func(w http.ResponseWriter, r *http.Request) (any, error) {
		project, err := httpapi.PathIdentifier(r, "projectId")
		if err != nil {
			return nil, err
		}
		if err := httpapi.ParseQuery(r).Err(); err != nil {
			return nil, err
		}
		var fields struct {
			DryRun jsontext.Value `json:"dry_run"`
		}
		if err := httpapi.ReadJSON(w, r, &fields, `{"dry_run": true}, of which dry_run may be left out`); err != nil {
			return nil, err
		}
		var a purged
		if a.DryRun, err = httpapi.JSONBool("dry_run", fields.DryRun); err != nil {
			return nil, err
		}
		do := store.PurgeDefinitions
		if a.DryRun {
			do = store.UnreferencedDefinitions
		}
		a.PurgedDefinitions, err = do(r.Context(), project)
		return a, err
	}))
}
