// Package app is the console service, put together: its configuration and its life. The service serves files that are
// built into it. It has no database, no key and no rights: the page calls the API with the key of its user.
package app

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/shutdown"
	"github.com/lectern-dev/lectern/shared/telemetry"

	"github.com/lectern-dev/lectern/services/console/internal/api"
	"github.com/lectern-dev/lectern/services/console/internal/site"
)

// Config configures the service.
type Config struct {
	HTTP      httpserver.Config
	Telemetry telemetry.Config

	// LogOutput takes the log. Nil: standard error.
	LogOutput io.Writer `env:"-"`
}

// service is the name in logs, spans and metrics.
const service = "console"

// stopTimeout bounds the shutdown after the last request.
const stopTimeout = 10 * time.Second

// Run serves until ctx ends, and then shuts down gracefully.
func Run(ctx context.Context, cfg Config) (err error) {
	files, err := site.Load()
	if err != nil {
		return err
	}
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: service, Config: cfg.Telemetry, LogOutput: cfg.LogOutput})
	if err != nil {
		return err
	}
	var parts shutdown.Stack
	defer func() { err = errors.Join(err, parts.Stop(stopTimeout)) }()
	parts.Add(tel.Shutdown)

	cfg.HTTP.CORSAllowedOrigins = nil // the API's pages may be anywhere, the console's files are for its own page
	server, err := httpserver.New(httpserver.Options{
		Service: service, Config: cfg.HTTP, Telemetry: tel, Public: api.Routes(files), Headers: api.Headers(),
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
