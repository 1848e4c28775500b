package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/edge"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// startEdges serves the public and the internal paths of the services.
func (r *run) startEdges(ctx context.Context, public, internal net.Listener, addresses map[routes.Service]address, environ map[string]string, logs logs) error {
	out, err := logs("edge")
	if err != nil {
		return err
	}
	var cfg telemetry.Config
	if err := config.Load(&cfg, environ); err != nil {
		return err
	}
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: "edge", Config: cfg, LogOutput: out})
	if err != nil {
		return err
	}
	r.parts.Add(tel.Shutdown)
	outside, inside := map[routes.Service]string{}, map[routes.Service]string{}
	for name, a := range addresses {
		outside[name], inside[name] = a.public, a.internal
	}
	r.serve("internal edge", internal, edge.New(edge.Options{Name: "edge", Routes: routes.Internal(), Addresses: inside, Telemetry: tel}))
	r.serve("edge", public, edge.New(edge.Options{Name: "edge", Routes: routes.Outside(), Addresses: outside, Telemetry: tel}))
	return nil
}

// finishWithin is how long running requests may take when the run stops.
const finishWithin = 3 * time.Second

func (r *run) serve(name string, l net.Listener, h http.Handler) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: h, Protocols: protocols, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
		DisableGeneralOptionsHandler: true, // "OPTIONS *" is no path that anybody has
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			r.fail(fmt.Errorf("%s: %w", name, err))
		}
	}()
	r.parts.Add(func(ctx context.Context) error {
		within, cancel := context.WithTimeout(ctx, finishWithin)
		defer cancel()
		if server.Shutdown(within) != nil {
			// Whoever still reads would hold up the stop: ends are cut, not bent.
			_ = server.Close()
		}
		<-ended
		return nil
	})
}
