// Package app is the embeddables service as a whole: its configuration, wiring and lifetime.
package app

import (
	"context"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/ingest"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/telemetry"

	"github.com/lectern-dev/lectern/services/embeddables/internal/api"
	"github.com/lectern-dev/lectern/services/embeddables/internal/store"
)

// Config is the configuration of the embeddables service: the settings of every data service, and the API's limits.
type Config struct {
	service.Config
	API api.Config
}

// Run serves embeddables until ctx ends, and then shuts down gracefully.
func Run(ctx context.Context, cfg Config) error { return service.Run(ctx, cfg.Config, definition(cfg)) }

// Migrate migrates the service's database, and the keys' database if AUTH_MIGRATE_DATABASE_URL is set.
func Migrate(ctx context.Context, cfg Config) error {
	return service.Migrate(ctx, cfg.Config, definition(cfg))
}

// NewDry returns an ingest that checks and counts records, and stores nothing. resource is "embeddables" or
// "embeddable-versions".
func NewDry(resource string) *ingest.Dry { return api.NewDry(resource) }

func definition(cfg Config) service.Definition {
	return service.Definition{
		Name:   "embeddables",
		Schema: store.Schema(),
		Routes: func(p *service.Parts) (public, internal *httpapi.Router) {
			public = api.Routes(cfg.API, store.New(p.Read, p.Primary), p.Keys.Guard, telemetry.Build())
			internal = httpapi.NewRouter()
			if p.Write != nil {
				api.AddIngest(internal, cfg.Ingest, store.NewWriter(p.Write), p)
			}
			remover := store.NewRemover(p.Remove)
			api.AddPurge(internal, remover, p)
			service.AddProjectRemoval(internal, p, remover.Project)
			return public, internal
		},
	}
}
