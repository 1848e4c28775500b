package app_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/telemetry"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
)

// serve runs a test's own service on the server of all services, and returns its address.
func serve(t *testing.T, environ map[string]string, routes func(rt *httpapi.Router)) string {
	t.Helper()
	environ["LISTEN_PUBLIC"], environ["LISTEN_INTERNAL"], environ["DRAIN_DELAY"] = "127.0.0.1:0", "127.0.0.1:0", "0s"
	var cfg httpserver.Config
	if err := config.Load(&cfg, environ); err != nil {
		t.Fatal(err)
	}
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "test", LogOutput: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	rt := httpapi.NewRouter()
	routes(rt)
	ready := make(chan string, 1)
	cfg.Ready = func(public, _ net.Addr) { ready <- public.String() }
	server, err := httpserver.New(httpserver.Options{Service: "test", Config: cfg, Telemetry: tel, Public: rt})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = tel.Shutdown(context.Background())
	})
	select {
	case address := <-ready:
		return address
	case err := <-ended:
		ended <- err // for the cleanup
		t.Fatal("the service did not start")
		return ""
	}
}

// TestSlowAndSteadyReader checks that a slow and steady client gets a long answer completely through the edge. The edge
// reads from the service at the client's pace.
func TestSlowAndSteadyReader(t *testing.T) {
	t.Parallel()
	const size = 6 << 20
	service := serve(t, map[string]string{"WRITE_TIMEOUT": "1s"}, func(rt *httpapi.Router) {
		rt.Get("/projects/{projectId}/entries", func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write([]byte(strings.Repeat("0123456789abcdef", size/16)))
			return err
		})
	})
	r := run(t, map[string]string{"WRITE_TIMEOUT": "1s"}, map[routes.Service]string{routes.Entries: service})
	got, took := faulttest.ReadSlowly(t, r.url, "/projects/p/entries")
	if got < size {
		t.Errorf("cut off after %d bytes of %d and %v", got, size, took)
	}
}
