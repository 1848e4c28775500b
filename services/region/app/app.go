// Package app configures the region service, connects its parts and runs it.
package app

import (
	"context"
	"slices"

	"github.com/lectern-dev/lectern/shared/auth/tokens"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/ingest"
	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/region/internal/api"
	"github.com/lectern-dev/lectern/services/region/internal/cache"
	"github.com/lectern-dev/lectern/services/region/internal/store"
	"github.com/lectern-dev/lectern/services/region/internal/zone"
)

// Config holds all settings of the region service. [service.Main] loads a Config from environment variables.
type Config struct {
	service.Config
	API   api.Config
	Cache cache.Options
}

// Validate reports an identity in INTERNAL_IDENTITIES whose issuer is none of TOKEN_ISSUERS.
func (c Config) Validate() error {
	for _, i := range c.API.InternalIdentities {
		if !slices.ContainsFunc(c.Auth.Issuers, func(known tokens.Issuer) bool { return known.URL == i.Issuer }) {
			return config.Invalid("INTERNAL_IDENTITIES", i.Issuer, "issuers of TOKEN_ISSUERS")
		}
	}
	return nil
}

// Run serves requests until ctx ends, and then shuts down gracefully. If MIGRATE_ON_START is true, Run first migrates,
// as [Migrate] does. The error is nil after a clean shutdown.
func Run(ctx context.Context, cfg Config) error { return service.Run(ctx, cfg.Config, definition(cfg)) }

// Migrate migrates the service's database, and the key database if AUTH_MIGRATE_DATABASE_URL is set. Without
// MIGRATE_DATABASE_URL, Migrate fails.
func Migrate(ctx context.Context, cfg Config) error {
	return service.Migrate(ctx, cfg.Config, definition(cfg))
}

// NewDry returns an [ingest.Dry] for projects. The Dry checks lines and counts their outcomes, but stores nothing.
func NewDry() *ingest.Dry { return api.NewDry() }

func definition(cfg Config) service.Definition {
	return service.Definition{
		Name:            "region",
		Schema:          store.Schema(),
		AdministersKeys: true,
		Routes: func(p *service.Parts) (public, internal *httpapi.Router) {
			zones := zone.NewTable()
			projects := store.New(p.Primary)
			regions := cache.New(api.ZoneOf(projects, zones), cfg.Cache)
			p.Go(func(ctx context.Context) {
				<-ctx.Done()
				regions.Close()
			})
			public = api.Routes(cfg.API, projects, regions, p.Keys.Guard, p.Keys.Verifier)
			internal = httpapi.NewRouter()
			api.AddLookUp(internal, cfg.API, regions, p.Keys.Verifier)
			api.AddKeys(internal, cfg.API, p.AdminKeys, p.KeyAdmin)
			if p.Write != nil {
				api.AddProjects(internal, cfg.API, cfg.Ingest, store.NewWriter(p.Write), zones, p)
			}
			api.AddRemoval(internal, store.NewWriter(p.Remove), p)
			return public, internal
		},
	}
}
