// Package app is the experiments service, put together: its configuration and its life.
package app

import (
	"context"

	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/experiments/internal/api"
	"github.com/lectern-dev/lectern/services/experiments/internal/store"
)

// Config is what the service is told.
type Config struct {
	service.Config
	API api.Config
}

// Run serves until ctx ends, and then stops without losing a request.
func Run(ctx context.Context, cfg Config) error { return service.Run(ctx, cfg.Config, definition(cfg)) }

// Migrate brings the service's database, and the keys' when it is told of it, to what this version
// needs.
func Migrate(ctx context.Context, cfg Config) error {
	return service.Migrate(ctx, cfg.Config, definition(cfg))
}

func definition(cfg Config) service.Definition {
	return service.Definition{
		Name:   "experiments",
		Schema: store.Schema(),
		Routes: func(p *service.Parts) (public, internal *httpapi.Router) {
			public = api.Routes(cfg.API, store.New(p.Read), p.Keys.Guard)
			internal = httpapi.NewRouter()
			if p.Write != nil {
				api.AddIngest(internal, cfg.Ingest, store.NewWriter(p.Write), p)
			}
			api.AddRemoval(internal, store.NewRemover(p.Remove), p)
			return public, internal
		},
	}
}
