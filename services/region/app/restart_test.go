package app

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/region/internal/store"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// gateway is a reverse proxy in front of one service at a time, as in a cluster. It keeps connections to the service
// open between requests, so a stopping service gets new requests on old connections. If the service is unreachable,
// gateway aborts the client's connection, so every status comes from the service.
type gateway struct {
	*httptest.Server
	target atomic.Pointer[url.URL]
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{}
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	proxy := &httputil.ReverseProxy{
		Transport:    transport,
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(g.target.Load()) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	g.Server = httptest.NewServer(proxy)
	t.Cleanup(func() { g.Close(); transport.CloseIdleConnections() })
	return g
}

// route sends all further requests to s.
func (g *gateway) route(t *testing.T, s *servicetest.Service) {
	t.Helper()
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	g.target.Store(target)
}

// TestRestartsUnderLoad replaces the service 20 times under load. Every answer is the right one, or the connection
// ends without an answer so that the client can retry. In particular, no request is answered 400. In even rounds the
// gateway learns of the new service during the drain delay. In odd rounds it learns only after the old service has
// stopped, so requests arrive while the service closes its connections.
func TestRestartsUnderLoad(t *testing.T) {
	t.Parallel()
	b := servicetest.NewBacking(t, store.Schema())
	environ := map[string]string{"DRAIN_DELAY": "50ms"}
	current := startOn(t, b, environ)
	put(t, current, "pr_1", "One", "Europe/Berlin")
	g := newGateway(t)
	g.route(t, current)
	pages := faulttest.Start(t, g.URL, faulttest.LoadOptions{
		Paths:   []string{"/docs", "/docs/start.js", "/openapi.yaml", "/projects/pr_1"},
		Clients: 8,
	})
	lookUps := faulttest.Start(t, g.URL, faulttest.LoadOptions{
		Method: http.MethodPost, Paths: []string{lookUpPath}, Key: servicetest.InternalKey,
		Body: `{"projectId":"pr_1","at":"2022-07-01"}`,
	})
	for round := range 20 {
		next := startOn(t, b, environ)
		stopped := make(chan error, 1)
		go func() { stopped <- current.Stop() }()
		if round%2 == 0 {
			eventually.True(t, "the service drains", func() bool { return strings.Contains(current.Log(), `"msg":"draining"`) })
			g.route(t, next)
		}
		if err := <-stopped; err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		g.route(t, next)
		current = next
		pages.Await(20)
		lookUps.Await(5)
	}
	pages.Stop().Check(t, "pages")
	lookUps.Stop().Check(t, "look-ups")
}
