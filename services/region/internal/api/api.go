// Package api owns the routes and handlers of the region service. The package reads projects from the store through
// [Reader], and zones through a cache.
package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/trustedkeys"

	"github.com/lectern-dev/lectern/services/region/internal/project"
	"github.com/lectern-dev/lectern/services/region/internal/zone"
)

// Reader is the part of the store that the handlers use.
type Reader interface {
	// Project returns one project as JSON, without its region. The error is a ProjectNotFound if the project is
	// unknown.
	Project(ctx context.Context, id string) ([]byte, error)
	// Titles returns the titles of those of the projects that are stored, by id.
	Titles(ctx context.Context, ids []string) (map[string]string, error)
	// Region returns the region of a project, or "" if the project has no region or is unknown.
	Region(ctx context.Context, id string) (string, error)
}

// Regions finds the zone of a project, from a cached copy if possible. A project that has no region or is unknown has
// the default zone.
type Regions interface {
	Get(ctx context.Context, projectID string) (zone.Zone, error)
}

// Config says which trusted services may look up regions, and has the clock for offsets.
type Config struct {
	// The keys of trusted services that may look up regions, comma-separated, each of 16 to 256 visible ASCII
	// characters. Not set: no service may.
	InternalKeys []config.Secret `env:"INTERNAL_API_KEYS"`

	// The subjects whose tokens may look up regions, as a JSON list. Each has an issuer of TOKEN_ISSUERS and a subject. Not
	// set: tokens look up no regions.
	InternalIdentities auth.Identities `env:"INTERNAL_IDENTITIES"`

	// Now is the clock. Nil: time.Now.
	Now func() time.Time `env:"-"`
}

// Validate reports an INTERNAL_API_KEYS with a key that is too short, too long or not visible ASCII.
func (c Config) Validate() error { return trustedkeys.Check("INTERNAL_API_KEYS", c.InternalKeys) }

func (c Config) clock() func() time.Time {
	if c.Now == nil {
		return time.Now
	}
	return c.Now
}

// API has the handlers that read projects and look up regions.
type API struct {
	store   Reader
	regions Regions
	now     func() time.Time
}

// Routes returns a router with every public route of the service. The routes about a key require that API key or a
// token. The look-up of regions requires one of the INTERNAL_API_KEYS, or a token of INTERNAL_IDENTITIES. The other
// routes require no key.
func Routes(cfg Config, store Reader, regions Regions, guard *auth.Guard, verifier *auth.Verifier) *httpapi.Router {
	a := &API{store: store, regions: regions, now: cfg.clock()}

	rt := httpapi.NewRouter()
	rt.Get("/projects/{projectId}", guard.Anonymous(a.getProject))
	rt.Get("/projects/{projectId}/key", guard.ProtectAnyScope(getKey))
	rt.Get("/me/projects", guard.Projects(a.listMyProjects))
	AddLookUp(rt, cfg, regions, verifier)
	rt.Get("/openapi.yaml", guard.Anonymous(getDescriptionYAML))
	rt.Get("/openapi.json", guard.Anonymous(getDescriptionJSON))
	rt.Get("/", redirectToReference)
	rt.Get("/docs", guard.Anonymous(getReference))
	rt.Get("/docs/errors", guard.Anonymous(getErrorsPage))
	rt.Get("/docs/{asset}", guard.Anonymous(getReferenceAsset))
	return rt
}

// AddLookUp adds POST /api/projects/region, the look-up of regions, which requires one of the INTERNAL_API_KEYS,
// or a token of INTERNAL_IDENTITIES. The public and the internal listener serve the look-up.
func AddLookUp(rt *httpapi.Router, cfg Config, regions Regions, verifier *auth.Verifier) {
	a := &API{regions: regions, now: cfg.clock()}
	rt.Post("/api/projects/region", auth.NewSharedKeys(cfg.InternalKeys).OrTokens(verifier, cfg.InternalIdentities).Protect(a.lookUpRegion))
}

// ZoneOf returns a function that reads the region of a project from store and returns its zone. A project that has no
// region or is unknown has the zone [project.DefaultRegion], marked as the default. The function fails if the tz
// database does not have the region.
func ZoneOf(store Reader, zones *zone.Table) func(context.Context, string) (zone.Zone, error) {
	return func(ctx context.Context, projectID string) (zone.Zone, error) {
		region, err := store.Region(ctx, projectID)
		if err != nil {
			return zone.Zone{}, err
		}
		z, err := zones.Find(cmp.Or(region, project.DefaultRegion))
		if err != nil {
			// Another process, whose tz database has the zone, stored it.
			return zone.Zone{}, fmt.Errorf("region %q of project %q: %w", region, projectID, err)
		}
		if region == "" {
			z = z.AsDefault()
		}
		return z, nil
	}
}

// getProject serves GET /projects/{projectId}: the id and the title of a project.
func (a *API) getProject(w http.ResponseWriter, r *http.Request) error {
	id, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return err
	}
	if err := httpapi.ParseQuery(r).Err(); err != nil {
		return err
	}
	body, err := a.store.Project(r.Context(), id)
	if err != nil {
		return err
	}
	return httpapi.WriteBody(w, r, "application/json", body, "")
}
