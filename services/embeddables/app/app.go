// Package app is the embeddables service as a whole: its configuration, wiring and lifetime.
package app

import (
	"context"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/ingest"
	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/embeddables/internal/api"
	"github.com/lectern-dev/lectern/services/embeddables/internal/store"
)

// Config is the configuration of the service.
type Config struct {
	service.Config
	API api.Config
}

// Run serves until ctx ends, and then shuts down without losing a request.
func Run(ctx context.Context, cfg Config) error { return service.Run(ctx, cfg.Config, definition(cfg)) }

// Migrate migrates the service's database, and the keys' database if one is configured.
func Migrate(ctx context.Context, cfg Config) error {
	return service.Migrate(ctx, cfg.Config, definition(cfg))
}

// NewDry returns the ingest of embeddables or embeddable-versions that stores nothing.
func NewDry(resource string) *ingest.Dry { return api.NewDry(resource) }

func definition(cfg Config) service.Definition {
	return service.Definition{
		Name:   "embeddables",
		Schema: store.Schema(),
		Routes: func(p *service.Parts) (public, internal *httpapi.Router) {
			public = api.Routes(cfg.API, store.New(p.Read), p.Keys.Guard)
			internal = httpapi.NewRouter()
			if p.Write != nil {
				api.AddIngest(internal, cfg.Ingest, store.NewWriter(p.Write), p)
			}
			service.AddProjectRemoval(internal, p, store.NewRemover(p.Remove).Project)
			return public, internal
		},
	}
}
