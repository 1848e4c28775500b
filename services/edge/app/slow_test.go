package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/servertest"
)

// serve runs a test's own service on the server of all services, and returns its address.
func serve(t *testing.T, environ map[string]string, routes func(rt *httpapi.Router)) string {
	t.Helper()
	rt := httpapi.NewRouter()
	routes(rt)
	s := servertest.Start(t, servertest.Options{Options: httpserver.Options{Public: rt}, Environ: environ})
	return strings.TrimPrefix(s.Public, "http://")
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
