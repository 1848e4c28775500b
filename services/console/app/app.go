// Package app assembles the console service: its configuration, start and shutdown. The service serves files that are
// built into the program. The service has no database, no key and no rights. The page in the browser calls the API with
// the key or the token of its user.
package app

import (
	"context"
	"errors"
	"io"

	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/shutdown"
	"github.com/lectern-dev/lectern/shared/telemetry"

	"github.com/lectern-dev/lectern/services/console/internal/api"
	"github.com/lectern-dev/lectern/services/console/internal/signin"
	"github.com/lectern-dev/lectern/services/console/internal/site"
)

// Config is the configuration of the console service. The command reads Config from environment variables.
type Config struct {
	HTTP      httpserver.Config
	Telemetry telemetry.Config
	SignIn    signin.Config

	// LogOutput takes the log. Nil: standard error.
	LogOutput io.Writer `env:"-"`
}

// service is the name of the console service in logs, spans and metrics.
const service = "console"

// Run serves the console until ctx ends, and then shuts down gracefully. Run ignores CORSAllowedOrigins of cfg.HTTP.
// The error reports a failed start, or a shutdown that was not clean.
func Run(ctx context.Context, cfg Config) (err error) {
	files, err := site.Load(cfg.SignIn.Element())
	if err != nil {
		return err
	}
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: service, Config: cfg.Telemetry, LogOutput: cfg.LogOutput})
	if err != nil {
		return err
	}
	var parts shutdown.Stack
	defer func() { err = errors.Join(err, parts.Stop(shutdown.Timeout)) }()
	parts.Add(tel.Shutdown)

	cfg.HTTP.CORSAllowedOrigins = nil // the API's pages may be anywhere, the console's files are for its own page
	server, err := httpserver.New(httpserver.Options{
		Service: service, Config: cfg.HTTP, Telemetry: tel, Public: api.Routes(files), Headers: api.Headers(cfg.SignIn.ConnectOrigins()),
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
