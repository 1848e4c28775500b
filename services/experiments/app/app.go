// Package app configures the experiments service, connects its parts and runs it.
package app

import (
	"context"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/ingest"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/telemetry"

	"github.com/lectern-dev/lectern/services/experiments/internal/api"
	"github.com/lectern-dev/lectern/services/experiments/internal/store"
)

// Config holds all settings of the experiments service. [service.Main] loads a Config from environment variables.
type Config struct {
	service.Config
	API api.Config
}

// Run serves requests until ctx ends, and then shuts down gracefully. If MIGRATE_ON_START is true, Run first migrates,
// as [Migrate] does. The error is nil after a clean shutdown.
func Run(ctx context.Context, cfg Config) error { return service.Run(ctx, cfg.Config, definition(cfg)) }

// Migrate migrates the service's database, and the key database if AUTH_MIGRATE_DATABASE_URL is set. Without
// MIGRATE_DATABASE_URL, Migrate fails.
func Migrate(ctx context.Context, cfg Config) error {
	return service.Migrate(ctx, cfg.Config, definition(cfg))
}

// NewDry returns an [ingest.Dry] for experiments. The Dry checks lines and counts their outcomes, but stores nothing.
func NewDry() *ingest.Dry { return api.NewDry() }

func definition(cfg Config) service.Definition {
	return service.Definition{
		Name:   "experiments",
		Schema: store.Schema(),
		Routes: func(p *service.Parts) (public, internal *httpapi.Router) {
			public = api.Routes(cfg.API, store.New(p.Read, p.Primary), p.Keys.Guard, telemetry.Build())
			internal = httpapi.NewRouter()
			if p.Write != nil {
				api.AddIngest(internal, cfg.Ingest, store.NewWriter(p.Write), p)
			}
			service.AddProjectRemoval(internal, p, store.NewRemover(p.Remove).Project)
			return public, internal
		},
	}
}
