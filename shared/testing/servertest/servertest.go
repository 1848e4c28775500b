// Package servertest runs the server of all services for a test, with routes of the test's own.
//
// Production code does not import it; the linter checks this.
package servertest

import (
	"context"
	"maps"
	"net"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/telemetry"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
)

// Options are those of the server, with its settings. Start sets Service, Config and Telemetry.
type Options struct {
	httpserver.Options

	Environ  map[string]string     // in place of those that Start sets
	Listener net.Listener          // of the public address; nil: a new one
	Spans    sdktrace.SpanExporter // may be nil
}

// Server is a running server.
type Server struct {
	Public, Internal string // base URLs
	Log              *logtest.Buffer
	Cancel           func()       // begins the shutdown
	Stop             func() error // shuts down, flushes the log, and returns the error of [httpserver.Server.Run]
}

// Start runs a server until t ends. The shutdown has no delay, and the log has the level debug, unless o says otherwise.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	environ := map[string]string{"LISTEN_PUBLIC": "127.0.0.1:0", "LISTEN_INTERNAL": "127.0.0.1:0", "DRAIN_DELAY": "0s", "LOG_LEVEL": "debug"}
	maps.Copy(environ, o.Environ)
	var c struct {
		Server    httpserver.Config
		Telemetry telemetry.Config
	}
	if err := config.Load(&c, environ); err != nil {
		t.Fatalf("servertest: %v", err)
	}
	s := &Server{Log: &logtest.Buffer{}}
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "test", Config: c.Telemetry, LogOutput: s.Log, SpanExporter: o.Spans})
	if err != nil {
		t.Fatalf("servertest: %v", err)
	}
	if o.Public == nil {
		o.Public = httpapi.NewRouter()
	}
	ready := make(chan struct{})
	c.Server.Public = o.Listener
	c.Server.Ready = func(public, internal net.Addr) {
		s.Public, s.Internal = "http://"+public.String(), "http://"+internal.String()
		close(ready)
	}
	o.Service, o.Config, o.Telemetry = "test", c.Server, tel
	server, err := httpserver.New(o.Options)
	if err != nil {
		t.Fatalf("servertest: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	s.Cancel = cancel
	s.Stop = sync.OnceValue(func() error {
		cancel()
		err := <-ended
		if e := tel.Shutdown(context.Background()); e != nil {
			t.Errorf("servertest: telemetry: %v", e)
		}
		return err
	})
	t.Cleanup(func() { _ = s.Stop() })
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("servertest: the server did not start: %v", err)
	}
	return s
}
