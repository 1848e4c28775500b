// Package app is the region service, put together: its configuration and its life.
package app

import (
	"context"
	"sync"

	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/region/internal/api"
	"github.com/lectern-dev/lectern/services/region/internal/cache"
	"github.com/lectern-dev/lectern/services/region/internal/store"
	"github.com/lectern-dev/lectern/services/region/internal/zone"
)

// Config is what the service is told.
type Config struct {
	service.Config
	API   api.Config
	Cache cache.Options
}

// Run serves until ctx ends, and then stops without losing a request.
func Run(ctx context.Context, cfg Config) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var behind sync.WaitGroup
	defer behind.Wait()
	defer stop()
	return service.Run(ctx, cfg.Config, definition(cfg, func(run func(context.Context)) {
		behind.Go(func() { run(background) })
	}))
}

// Migrate brings the service's database, and the keys' when it is told of it, to what this version
// needs.
func Migrate(ctx context.Context, cfg Config) error {
	return service.Migrate(ctx, cfg.Config, definition(cfg, nil))
}

// definition is what region adds to a service. background runs something for as long as the service
// does.
func definition(cfg Config, background func(func(context.Context))) service.Definition {
	return service.Definition{
		Name:   "region",
		Schema: store.Schema(),
		Routes: func(p *service.Parts) (public, internal *httpapi.Router) {
			zones := zone.NewTable()
			projects := store.New(p.Primary)
			regions := cache.New(api.ZoneOf(projects, zones), cfg.Cache, p.Telemetry.Logger)
			background(func(ctx context.Context) {
				defer regions.Close()
				store.Listen(ctx, cfg.DatabaseURL, regions, p.Telemetry.Logger)
			})
			public = api.Routes(cfg.API, projects, regions, p.Keys.Guard)
			if p.Write != nil {
				internal = api.InternalRoutes(cfg.API, cfg.Ingest, store.NewWriter(p.Write), zones, p)
			}
			return public, internal
		},
	}
}
