package api

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
)

// ownProject is one project of a key or identity.
type ownProject struct {
	ProjectID string   `json:"projectId"`
	Title     *string  `json:"title"` // null: the project is not stored
	Scopes    []string `json:"scopes"`
}

// maxProjects is the greatest page of a list of projects, and the default.
const maxProjects = 1000

// listMyProjects serves GET /me/projects: the projects in which the key or the identity of the request has rights.
func (a *API) listMyProjects(w http.ResponseWriter, r *http.Request, list func(after string, limit int) ([]auth.Principal, error)) error {
	q := httpapi.ParseQuery(r, "limit", "cursor")
	l, err := q.List(r, httpapi.Binding{List: "my-projects"}, lists.Position{}, lists.Position{}, q.Int("limit", maxProjects, 1, maxProjects))
	if err != nil {
		return err
	}
	all, err := list(l.Page.After.ID, l.Page.Limit+1)
	if err != nil {
		return err
	}
	var next *lists.Position
	if len(all) > l.Page.Limit {
		all = all[:l.Page.Limit]
		next = &lists.Position{ID: all[len(all)-1].ProjectID}
	}
	ids := make([]string, len(all))
	for i, p := range all {
		ids[i] = p.ProjectID
	}
	titles, err := a.store.Titles(r.Context(), ids)
	if err != nil {
		return err
	}
	records := make([][]byte, len(all))
	for i, p := range all {
		project := ownProject{ProjectID: p.ProjectID, Scopes: p.Scopes.Names()}
		if title, ok := titles[p.ProjectID]; ok {
			project.Title = &title
		}
		if records[i], err = json.Marshal(project); err != nil {
			return err
		}
	}
	return l.WriteRecords(w, r, records, next)
}
