package edge

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// start runs an edge before one server for each named service; each is h, told whose it is.
func start(t *testing.T, o telemetry.Options, h func(service routes.Service, w http.ResponseWriter, r *http.Request), services ...routes.Service) (*httptest.Server, *telemetry.Telemetry) {
	t.Helper()
	o.Service = "edge"
	o.Config.LogFormat = "json"
	if o.LogOutput == nil {
		o.LogOutput = io.Discard
	}
	tel, err := telemetry.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[routes.Service]string{}
	for _, s := range services {
		backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h(s, w, r) }))
		t.Cleanup(backend.Close)
		addresses[s] = backend.Listener.Addr().String()
	}
	server := httptest.NewServer(New(Options{Name: "edge", Routes: routes.Outside(), Addresses: addresses, Telemetry: tel}))
	t.Cleanup(server.Close)
	return server, tel
}

func TestPathsGoToTheirServices(t *testing.T) {
	server, _ := start(t, telemetry.Options{}, func(s routes.Service, w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", s, r.Method, r.RequestURI)
	}, routes.Entries, routes.Region)
	for _, tt := range []struct{ method, path, want string }{
		{"GET", "/projects/p/entries?limit=1;2&x=%zz", "entries GET /projects/p/entries?limit=1;2&x=%zz"},
		{"GET", "/projects/a%2Fb/entries/%E2%98%80%2f%252F", "entries GET /projects/a%2Fb/entries/%E2%98%80%2f%252F"},
		{"DELETE", "/projects/p/entries/e/events", "entries DELETE /projects/p/entries/e/events"},
		{"GET", "/projects/p", "region GET /projects/p"},
		{"POST", "/api/projects/region", "region POST /api/projects/region"},
		{"GET", "/projects/p/entries/..", "entries GET /projects/p/entries/.."},
		{"GET", "/projects/p/embeddables", "404"}, // its service does not run
		{"GET", "/projects/p/entries/", "404"},
		{"GET", "//projects/p/entries", "404"},
		{"GET", "/internal/entries", "404"},
		{"GET", "/", "404"},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			// By hand, so that no client tidies the path.
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n", tt.method, tt.path)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want != "404" {
				if got := string(body); got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				return
			}
			want := `{"error":{"code":"route_not_found","message":"There is no such path."}}` + "\n"
			if resp.StatusCode != 404 || string(body) != want || resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("X-Request-Id") == "" {
				t.Errorf("got %d %q %v", resp.StatusCode, body, resp.Header)
			}
		})
	}
}

func TestServicesSeeWhoAsked(t *testing.T) {
	var got http.Header
	var host string
	server, _ := start(t, telemetry.Options{}, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		got, host = r.Header, r.Host
		w.Header().Set("X-Request-Id", r.Header.Get("X-Request-Id"))
	}, routes.Entries)
	req, _ := http.NewRequest("GET", server.URL+"/projects/p/entries", nil)
	req.Host = "api.example.com"
	for name, value := range map[string]string{
		"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Host": "evil.example", "Forwarded": "for=6.6.6.6", "X-Request-Id": "abc-1",
		"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "X-Api-Key": "rk_1", "Accept-Encoding": "br",
	} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	want := map[string]string{
		"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "api.example.com", "X-Forwarded-Proto": "http", "Forwarded": "", "X-Request-Id": "abc-1",
		"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "X-Api-Key": "rk_1", "Accept-Encoding": "br",
	}
	seen := map[string]string{}
	for name := range want {
		seen[name] = got.Get(name)
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if host != "api.example.com" {
		t.Errorf("Host %q", host)
	}
	if ids := resp.Header["X-Request-Id"]; len(ids) != 1 || ids[0] != "abc-1" {
		t.Errorf("X-Request-Id %q", ids)
	}
}

func TestOneTraceThroughTheEdge(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	var got string
	server, tel := start(t, telemetry.Options{SpanExporter: keep{spans}}, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Traceparent")
	}, routes.Entries)
	req, _ := http.NewRequest("GET", server.URL+"/projects/p/entries", nil)
	req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	server.Close()
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	const trace = "0af7651916cd43dd8448eb211c80319c"
	if !strings.HasPrefix(got, "00-"+trace+"-") || strings.Contains(got, "b7ad6b7169203331") {
		t.Errorf("the service was given %q, want the trace with a span of the edge's", got)
	}
	all := spans.GetSpans()
	if len(all) != 2 {
		t.Fatalf("%d spans, want one of the request and one of handing it on", len(all))
	}
	for _, s := range all {
		if s.SpanContext.TraceID().String() != trace {
			t.Errorf("span %q is of trace %s", s.Name, s.SpanContext.TraceID())
		}
	}
}

// keep holds on to spans past the exporter's end.
type keep struct{ *tracetest.InMemoryExporter }

func (keep) Shutdown(context.Context) error { return nil }

func TestStreamsAndCuts(t *testing.T) {
	proceed := make(chan struct{})
	var logged bytes.Buffer
	server, tel := start(t, telemetry.Options{LogOutput: &logged}, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		w.(http.Flusher).Flush()
		<-proceed
		panic(http.ErrAbortHandler)
	}, routes.Entries)
	resp, err := http.Get(server.URL + "/projects/p/entries")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	// The service waits until this line was read: a proxy that held it back would never get on.
	if line, err := body.ReadString('\n'); err != nil || line != "first\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	close(proceed)
	if rest, err := io.ReadAll(body); err == nil {
		t.Errorf("a cut answer looks whole; the rest was %q", rest)
	}
	server.Close()
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if line := logged.String(); !strings.Contains(line, `"aborted":true`) || !strings.Contains(line, `"route":"/projects/{projectId}/entries"`) {
		t.Errorf("logged %s", line)
	}
}

func TestServiceOutOfReach(t *testing.T) {
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "edge", LogOutput: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	server := httptest.NewServer(New(Options{Name: "edge", Routes: routes.Outside(), Telemetry: tel,
		Addresses: map[routes.Service]string{routes.Entries: closed.Addr().String()}}))
	defer server.Close()
	resp, err := http.Get(server.URL + "/projects/pr_1/entries")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), `"projectId":"pr_1"`) || strings.Contains(string(body), "127.0.0.1") {
		t.Errorf("got %d %v %s", resp.StatusCode, resp.Header, body)
	}
}
