package api

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/shared/httpapi"

	"github.com/lectern-dev/lectern/services/region/internal/project"
	"github.com/lectern-dev/lectern/services/region/internal/zone"
)

// owner serves those who say which projects there are: what they stored, as it stands, and its end.
type owner struct {
	store Writer
	zones *zone.Table
	now   func() time.Time
}

// getProject answers with all that is kept of a project, and what operation 9 says of it once every process
// has seen it: its zone and the offset.
func (o *owner) getProject(w http.ResponseWriter, r *http.Request) error {
	id, err := pathProject(r)
	if err != nil {
		return err
	}
	p, err := o.store.Get(r.Context(), id)
	if err != nil {
		return err
	}
	name := project.DefaultRegion
	if p.Region != nil {
		name = *p.Region
	}
	z, err := o.zones.Find(name)
	if err != nil {
		return fmt.Errorf("region %q of project %q: %w", name, id, err)
	}
	w.Header()["Cache-Control"] = []string{"no-store"}
	writeJSON(w, append(project.AppendAll(nil, p, z.Name(), z.OffsetMinutes(o.now())), '\n'))
	return nil
}

// deleteProject forgets a project: its title and region. What other services keep of it stays.
func (o *owner) deleteProject(w http.ResponseWriter, r *http.Request) error {
	id, err := pathProject(r)
	if err != nil {
		return err
	}
	deleted, err := o.store.DeleteProject(r.Context(), id)
	if err != nil {
		return err
	}
	writeJSON(w, append(strconv.AppendBool([]byte(`{"deleted":`), deleted), '}', '\n'))
	return nil
}

func pathProject(r *http.Request) (string, error) {
	id, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return "", err
	}
	return id, httpapi.ParseQuery(r).Err()
}

func writeJSON(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	_, _ = w.Write(body) // a client that went away can not be told
}
