package api

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// ownProject is one project of a key or identity.
type ownProject struct {
	ProjectID string   `json:"projectId"`
	Title     *string  `json:"title"` // null: the project is not stored
	Scopes    []string `json:"scopes"`
}

// listMyProjects serves GET /me/projects: the projects in which the key or the identity of the request has rights.
func (a *API) listMyProjects(w http.ResponseWriter, r *http.Request, all []auth.Principal) error {
	if err := httpapi.ParseQuery(r).Err(); err != nil {
		return err
	}
	ids := make([]string, len(all))
	for i, p := range all {
		ids[i] = p.ProjectID
	}
	titles, err := a.store.Titles(r.Context(), ids)
	if err != nil {
		return err
	}
	projects := make([]ownProject, len(all))
	for i, p := range all {
		projects[i] = ownProject{ProjectID: p.ProjectID, Scopes: p.Scopes.Names()}
		if title, ok := titles[p.ProjectID]; ok {
			projects[i].Title = &title
		}
	}
	body, err := json.Marshal(projects)
	if err != nil {
		return err
	}
	return httpapi.WriteBody(w, r, "application/json", body, "")
}
