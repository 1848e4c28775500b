package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/lectern-dev/lectern/shared/http/httpapi"

	"github.com/lectern-dev/lectern/services/region/internal/project"
	"github.com/lectern-dev/lectern/services/region/internal/zone"
)

// owner serves the clients that store projects, such as the operator: it returns the projects that they stored.
type owner struct {
	store Writer
	zones *zone.Table
	now   func() time.Time
}

// getProject answers with a stored project, its zone and the zone's current offset. The look-up of a region gives the
// same zone once no process has an older cached copy.
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
	httpapi.WriteEncoded(w, append(project.AppendAll(nil, p, z.Name(), z.OffsetMinutes(o.now())), '\n'))
	return nil
}

func pathProject(r *http.Request) (string, error) {
	id, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return "", err
	}
	return id, httpapi.ParseQuery(r).Err()
}
