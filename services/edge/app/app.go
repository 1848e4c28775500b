// Package app assembles the edge: its configuration, start and shutdown. An edge is the one address of the documented
// paths and the console, or of the internal paths. The edge sends a request to the service that has the path. The
// edge has no database and no rights. The edge sends the services the address of the client, and a key by which the
// services recognise the edge.
package app

import (
	"context"
	"errors"
	"net/http"

	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/shutdown"
	"github.com/lectern-dev/lectern/shared/telemetry"

	"github.com/lectern-dev/lectern/services/edge/internal/api"
)

// service is the name of the edge in logs, spans and metrics.
const service = "edge"

// Run serves the edge until ctx ends, and then shuts down gracefully. The error reports invalid settings, a failed
// start, or a shutdown that was not clean.
func Run(ctx context.Context, cfg Config) (err error) {
	if err := cfg.Validate(); err != nil {
		return err
	}
	addresses, err := cfg.addresses()
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

	waits := cfg.Waits.Pool()
	if err := limits.Measure(tel.MeterProvider, waits); err != nil {
		return err
	}
	stopping, stop := context.WithCancel(context.Background())
	defer stop()
	edge, err := api.New(api.Options{
		Routes: cfg.table(), Exclude: cfg.Exclude, Addresses: addresses, Key: cfg.HTTP.EdgeKeys[0],
		AnswerTimeout: cfg.AnswerTimeout, Waits: waits, Stopping: stopping, Telemetry: tel,
	})
	if err != nil {
		return err
	}
	parts.Go(edge.Refresh)

	cfg.HTTP.EdgeKeys = nil // nobody in front of the edge has one
	server, err := httpserver.New(httpserver.Options{
		Service: service, Config: cfg.HTTP, Telemetry: tel, Public: edge.Routes(), Plain: http.Header{}, CORSOnErrors: true, OnlyHTTP1: !cfg.HTTP2,
		Inside: cfg.Paths == "internal", Stopping: stop,
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
