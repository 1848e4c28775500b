package httpserver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
)

// keeper keeps its spans when it is shut down, unlike [tracetest.InMemoryExporter].
type keeper struct{ *tracetest.InMemoryExporter }

func (keeper) Shutdown(context.Context) error { return nil }

// TestWhoChoosesTheTrace checks that a client of the public address cannot decide whether its request is sampled. Its
// trace is linked. The edge, a trusted proxy and clients of the internal address continue their traces.
func TestWhoChoosesTheTrace(t *testing.T) {
	const caller, edgeKey = "0af7651916cd43dd8448eb211c80319c", "edge-key-0123456789abcdef"
	answer := func(rt *httpapi.Router) {
		rt.Get("/x", func(w http.ResponseWriter, r *http.Request) error {
			return httpapi.WriteBody(w, r, "text/plain", []byte("x"), "")
		})
	}
	for _, tc := range []struct {
		name     string
		environ  map[string]string
		internal bool
		headers  []string
		joined   bool
	}{
		{"a client", nil, false, nil, false},
		{"a client with a wrong key", map[string]string{"EDGE_KEYS": edgeKey}, false, []string{"Lectern-Edge-Key", "edge-key-0123456789abcdeX"}, false},
		{"the edge", map[string]string{"EDGE_KEYS": edgeKey}, false, []string{"Lectern-Edge-Key", edgeKey}, true},
		{"a trusted proxy", map[string]string{"TRUSTED_PROXIES": "127.0.0.0/8"}, false, nil, true},
		{"a private peer, which may only name its client", map[string]string{"TRUSTED_PROXIES": "private"}, false, []string{"X-Forwarded-For", "203.0.113.9"}, false},
		{"the internal address", nil, true, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, sampler := range []string{"parentbased_always_off", "parentbased_always_on"} {
				t.Setenv("OTEL_TRACES_SAMPLER", sampler)
				exporter := keeper{tracetest.NewInMemoryExporter()}
				internal := httpapi.NewRouter()
				answer(internal)
				peers := faulttest.NewPeers(t)
				s := serve(t, setup{routes: answer, internal: internal, environ: tc.environ, spans: exporter, listener: peers})
				if strings.HasPrefix(tc.name, "a private peer") {
					s.client.Transport.(*http.Transport).DialContext = peers.Dialer("10.0.0.5").DialContext
				}
				url := s.public
				if tc.internal {
					url = s.internal
				}
				s.get(t, url+"/x", append([]string{"Traceparent", "00-" + caller + "-b7ad6b7169203331-01"}, tc.headers...)...)
				if err := s.stop(); err != nil {
					t.Fatal(err)
				}
				spans := exporter.GetSpans()
				if sampled := tc.joined || sampler == "parentbased_always_on"; !sampled {
					if len(spans) > 0 {
						t.Errorf("%s: the client had its request sampled", sampler)
					}
					continue
				}
				if len(spans) != 1 {
					t.Fatalf("%s: %d spans", sampler, len(spans))
				}
				joined := spans[0].SpanContext.TraceID().String() == caller
				linked := len(spans[0].Links) == 1 && spans[0].Links[0].SpanContext.TraceID().String() == caller
				if joined != tc.joined || linked == tc.joined {
					t.Errorf("%s: joined %v, linked %v", sampler, joined, linked)
				}
			}
		})
	}
}
