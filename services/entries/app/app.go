// Package app configures the entries service, connects its parts and runs it.
package app

import (
	"context"
	"errors"
	"log/slog"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/ingest"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/redis/hints"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/telemetry"

	"github.com/lectern-dev/lectern/services/entries/internal/api"
	"github.com/lectern-dev/lectern/services/entries/internal/store"
	"github.com/lectern-dev/lectern/services/entries/internal/watch"
)

// Config holds all settings of the entries service. [service.Main] loads a Config from environment variables.
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

// NewDry returns an [ingest.Dry] for entries if resource is "entries", and otherwise for events. The Dry checks lines
// and counts their outcomes, but stores nothing.
func NewDry(resource string) *ingest.Dry { return api.NewDry(resource) }

func definition(cfg Config) service.Definition {
	return service.Definition{
		Name:   "entries",
		Schema: store.Schema(),
		Routes: func(p *service.Parts) (public, internal *httpapi.Router) { return newRoutes(cfg, p) },
	}
}

// newRoutes starts the background work of the service, and returns the routes of the public and of the internal
// listener. If the metrics cannot be registered, newRoutes only logs the error.
func newRoutes(cfg Config, p *service.Parts) (public, internal *httpapi.Router) {
	reader := store.New(p.Read, p.Primary)
	waiting := watch.New(reader)
	waits := cfg.API.Pool()
	news := hints.New(p.Keys.Redis, "lectern:entries:changes", p.Telemetry.Logger)
	p.Go(func(ctx context.Context) { news.Receive(ctx, waiting.Hint) })
	p.Go(news.Publish)
	losses := &losses{log: p.Telemetry.Logger}
	internal = httpapi.NewRouter()
	if p.Write != nil {
		api.AddIngest(internal, cfg.Ingest, store.NewWriter(p.Write, losses.note), news.Send, p)
	}
	api.AddRemoval(internal, store.NewRemover(p.Remove, losses.note), news.Send, p)
	public = api.Routes(api.Options{
		Config: cfg.API, Store: reader, Insights: func() api.Insights { return reader.Pinned() },
		Guard: p.Keys.Guard, Watch: waiting, Waits: waits, Stopping: p.Stopping,
		Build: telemetry.Build(),
	})
	err := errors.Join(measureFeed(p.Telemetry.MeterProvider, waiting, losses), limits.Measure(p.Telemetry.MeterProvider, waits))
	if err != nil {
		p.Telemetry.Logger.Error("the change feed has no metrics", slog.Any("error", err))
	}
	return public, internal
}
