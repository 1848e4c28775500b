package app_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
)

// TestServiceFailsUnderLoad checks that a failing service causes 503 and broken answers only on its own paths. No part
// of an answer looks complete.
func TestServiceFailsUnderLoad(t *testing.T) {
	list := bytes.Repeat([]byte("a row of a list\n"), 40_000)
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/entries") {
			_, _ = w.Write(list) // chunked
			return
		}
		w.Header().Set("Content-Length", "5")
		_, _ = w.Write([]byte("small"))
	})
	failing, well := httptest.NewServer(serve), httptest.NewServer(serve)
	t.Cleanup(failing.Close)
	t.Cleanup(well.Close)
	line := faulttest.NewProxy(t, failing.Listener.Addr().String())
	r := run(t, nil, map[routes.Service]string{routes.Entries: line.Addr(), routes.Region: well.Listener.Addr().String()})
	load := faulttest.Start(t, r.url, faulttest.LoadOptions{Paths: []string{"/projects/p/entries", "/projects/p/entries/e"}, Clients: 4})
	others := faulttest.Start(t, r.url, faulttest.LoadOptions{Paths: []string{"/projects/p"}, Clients: 2})
	for range 5 {
		load.Await(4, 20*time.Second)
		line.Reset() // connections of a killed process
		load.Await(4, 20*time.Second)
		line.CutAfter(100_000) // in the middle of a list
		until(t, "an answer is cut", func() bool { return line.Cuts() > 0 })
		line.Refuse()
		_, before, _ := load.Seen()
		until(t, "an answer is refused", func() bool { _, refused, _ := load.Seen(); return refused > before })
		line.Heal()
	}
	took := load.Await(8, 20*time.Second)
	report := load.Stop()
	report.Check(t, "the service that fails")
	if report.Refused == 0 || report.Broken == 0 || took > 5*time.Second {
		t.Errorf("%v; %v until it answered again", report, took)
	}
	rest := others.Stop()
	rest.Check(t, "the other service")
	if rest.Refused+rest.Broken > 0 {
		t.Errorf("the other service: %v", rest)
	}
}
