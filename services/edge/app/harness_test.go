package app_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/lectern-dev/lectern/services/edge/app"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
)

// key is the key of the edge.
const key = "edge-key-0123456789abcdef"

// running is an edge that runs until its test ends.
type running struct {
	url, internal string
	peers         *faulttest.Peers // of the public address, if private proxies are trusted
	log           *logtest.Buffer
	stop          func() error
}

// run runs an edge in front of the services at these addresses.
func run(t *testing.T, environ map[string]string, addresses map[routes.Service]string) running {
	t.Helper()
	all := map[string]string{
		"LISTEN_PUBLIC": "127.0.0.1:0", "LISTEN_INTERNAL": "127.0.0.1:0", "DRAIN_DELAY": "0s", "LOG_LEVEL": "debug", "EDGE_KEYS": key, "EDGE_HTTP2": "true",
	}
	var services []string
	for name, address := range addresses {
		services = append(services, string(name)+"="+address)
	}
	all["EDGE_SERVICES"] = strings.Join(services, ",")
	maps.Copy(all, environ)
	var cfg app.Config
	if err := config.Load(&cfg, all); err != nil {
		t.Fatal(err)
	}
	r := running{log: &logtest.Buffer{}}
	cfg.LogOutput = r.log
	if cfg.HTTP.TrustedProxies.Private {
		r.peers = faulttest.NewPeers(t)
		cfg.HTTP.Public = r.peers
	}
	ready := make(chan struct{})
	cfg.HTTP.Ready = func(public, internal net.Addr) {
		r.url, r.internal = "http://"+public.String(), "http://"+internal.String()
		close(ready)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx, cfg) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	r.log.ReportErrors(t, "the edge")
	t.Cleanup(func() { _ = r.stop() })
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("it did not start: %v", err)
	}
	return r
}

// start runs an edge in front of one server for each of services. Each server calls h with its service.
func start(t *testing.T, environ map[string]string, h func(service routes.Service, w http.ResponseWriter, r *http.Request), services ...routes.Service) running {
	t.Helper()
	addresses := map[routes.Service]string{}
	for _, s := range services {
		backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h(s, w, r) }))
		t.Cleanup(backend.Close)
		addresses[s] = backend.Listener.Addr().String()
	}
	return run(t, environ, addresses)
}

// gateway returns a function that sends a GET of a client through a gateway in a private network.
func (r running) gateway(t *testing.T) func(client, path string, headers ...string) (int, string) {
	transport := &http.Transport{DialContext: r.peers.Dialer("10.0.0.5").DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return func(client, path string, headers ...string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		req.Header.Set("X-Forwarded-For", client)
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return resp.StatusCode, string(text)
	}
}

// get sends a request on a new connection and reads the whole answer.
func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	resp, err := (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(newRequest(t, http.MethodGet, url, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func newRequest(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// body returns the body of an API error, with more after the error.
func body(code, message, more string) string {
	return fmt.Sprintf(`{"error":{"code":%q,"message":%q}%s}`, code, message, more) + "\n"
}
