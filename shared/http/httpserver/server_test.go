package httpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/goleak"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/telemetry"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitTimeout bounds each wait for an event that should happen at once.
const waitTimeout = 5 * time.Minute

// running is a running server with a client.
type running struct {
	public, internal string // base URLs
	log              *logtest.Buffer
	client           *http.Client
	stop             func() error // cancels Run's context, waits for Run and shuts telemetry down
	cancel           func()       // cancels Run's context
}

// setup configures the server of a test.
type setup struct {
	environ  map[string]string
	routes   func(public *httpapi.Router)
	internal *httpapi.Router
	checks   []httpserver.Check
	plain    http.Header
	spans    sdktrace.SpanExporter
	listener net.Listener // of the public address; nil: a new one
}

// serve runs a server until the test ends.
func serve(t *testing.T, s setup) *running {
	t.Helper()
	router := httpapi.NewRouter()
	if s.routes != nil {
		s.routes(router)
	}
	server := servertest.Start(t, servertest.Options{
		Options: httpserver.Options{Public: router, Internal: s.internal, Checks: s.checks, Plain: s.plain},
		Environ: s.environ, Listener: s.listener, Spans: s.spans,
	})
	transport := &http.Transport{DisableCompression: true}
	stop := func() error {
		transport.CloseIdleConnections()
		return server.Stop()
	}
	t.Cleanup(func() { _ = stop() })
	return &running{
		public: server.Public, internal: server.Internal, log: server.Log, stop: stop, cancel: server.Cancel,
		client: &http.Client{Transport: transport, Timeout: waitTimeout},
	}
}

// get sends a GET request and returns the answer and its whole body.
func (r *running) get(t *testing.T, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	return r.do(t, http.MethodGet, url, headers...)
}

func (r *running) do(t *testing.T, method, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// lines returns the log lines with this message, once there is one. A line may be delayed by telemetry.LogDelay.
func (r *running) lines(t *testing.T, message string) []map[string]any {
	t.Helper()
	var found []map[string]any
	eventually.True(t, "a line "+message, func() bool {
		found = nil
		for line := range strings.Lines(r.log.String()) {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("not JSON: %s", line)
			}
			if m["msg"] == message {
				found = append(found, m)
			}
		}
		return len(found) > 0
	})
	return found
}

// raw sends bytes on a new connection, and returns all bytes of the answer and the error that ended it.
func raw(t *testing.T, url, request string) (string, error) {
	t.Helper()
	conn := faulttest.Dial(t, url)
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(conn)
	return string(b), err
}

func hello(w http.ResponseWriter, r *http.Request) error {
	return httpapi.WriteBody(w, r, "application/json", []byte(`{"hello":"world"}`), "")
}

func TestRunServesDuringTheDelayAndAsksClientsToLeave(t *testing.T) {
	t.Parallel()
	s := serve(t, setup{
		environ: map[string]string{"DRAIN_DELAY": "6s"},
		routes:  func(rt *httpapi.Router) { rt.Get("/x", hello) },
	})
	if resp, _ := s.get(t, s.public+"/x"); resp.Close {
		t.Error("the connection is not kept while nothing drains")
	}
	s.cancel()
	s.lines(t, "draining")
	resp, body := s.get(t, s.public+"/x")
	if resp.StatusCode != http.StatusOK || body != `{"hello":"world"}` {
		t.Errorf("during the delay: %d %s", resp.StatusCode, body)
	}
	if !resp.Close {
		t.Error("during the delay the answer has no Connection: close")
	}
	if resp, _ := s.get(t, s.internal+"/readyz"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("/readyz during the delay: %d, want 503", resp.StatusCode)
	}
	if resp, _ := s.get(t, s.internal+"/healthz"); resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz during the delay: %d, want 200", resp.StatusCode)
	}
	if err := s.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestRunCutsWhatDoesNotEnd(t *testing.T) {
	entered := make(chan struct{})
	s := serve(t, setup{
		environ: map[string]string{"DRAIN_TIMEOUT": "50ms"},
		routes: func(rt *httpapi.Router) {
			rt.Get("/endless", func(w http.ResponseWriter, r *http.Request) error {
				_, _ = io.WriteString(w, "half")
				_ = http.NewResponseController(w).Flush()
				close(entered)
				<-r.Context().Done()
				panic(http.ErrAbortHandler)
			})
		},
	})
	conn := faulttest.Dial(t, s.public)
	// In HTTP/1.0 the end of the connection is the end of the body, so only a reset shows the fault.
	if _, err := io.WriteString(conn, "GET /endless HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered
	err := s.stop()
	if err == nil || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 requests did not finish") {
		t.Errorf("Run: %v, want the interrupted request", err)
	}
	if b, err := io.ReadAll(conn); err == nil {
		t.Errorf("a broken answer looks complete: %q", b)
	}
}

func TestRunDrainsBothListenersAtOnce(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := serve(t, setup{routes: func(rt *httpapi.Router) {
		rt.Get("/slow", func(w http.ResponseWriter, _ *http.Request) error {
			close(entered)
			<-release
			w.WriteHeader(http.StatusNoContent)
			return nil
		})
	}})
	conn := faulttest.Dial(t, s.public)
	if _, err := io.WriteString(conn, "GET /slow HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered
	s.cancel()
	eventually.True(t, "the internal listener closes", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.internal, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	close(release)
	if b, err := io.ReadAll(conn); err != nil || !strings.Contains(string(b), " 204 ") {
		t.Errorf("the slow request: %q %v", b, err)
	}
	if err := s.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestRunSaysWhichAddressIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, tc := range []struct {
		name string
		in   httpserver.Config
		want string
	}{
		{"public", httpserver.Config{ListenPublic: taken.Addr().String(), ListenInternal: "127.0.0.1:0"}, "LISTEN_PUBLIC"},
		{"internal", httpserver.Config{ListenPublic: "127.0.0.1:0", ListenInternal: taken.Addr().String()}, "LISTEN_INTERNAL"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "test", LogOutput: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tel.Shutdown(context.Background()) }()
			server, err := httpserver.New(httpserver.Options{Service: "test", Config: tc.in, Telemetry: tel, Public: httpapi.NewRouter()})
			if err != nil {
				t.Fatal(err)
			}
			err = server.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), taken.Addr().String()) {
				t.Errorf("Run: %v, want %s and the address in it", err, tc.want)
			}
		})
	}
}

func TestConfigValidate(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   map[string]string
		want []string // variables with an invalid value
	}{
		{name: "defaults"},
		{name: "all good", in: map[string]string{
			"PUBLIC_URL": "https://api.example.com/base", "CORS_ALLOWED_ORIGINS": "https://a.example, http://localhost:3000",
			"TRUSTED_PROXIES": "10.0.0.0/8,fd00::/8", "DRAIN_DELAY": "0s",
		}},
		{name: "all bad", in: map[string]string{
			"LISTEN_PUBLIC": "8080", "LISTEN_INTERNAL": "host:", "PUBLIC_URL": "api.example.com",
			"CORS_ALLOWED_ORIGINS": "https://a.example/path", "READ_TIMEOUT": "-1s", "WRITE_TIMEOUT": "0s",
			"IDLE_TIMEOUT": "0s", "DRAIN_DELAY": "-1s", "DRAIN_TIMEOUT": "0s",
		}, want: []string{
			"LISTEN_PUBLIC", "LISTEN_INTERNAL", "PUBLIC_URL", "CORS_ALLOWED_ORIGINS", "READ_TIMEOUT",
			"WRITE_TIMEOUT", "IDLE_TIMEOUT", "DRAIN_DELAY", "DRAIN_TIMEOUT",
		}},
		{name: "a proxy that is no CIDR", in: map[string]string{"TRUSTED_PROXIES": "10.0.0.1"}, want: []string{"TRUSTED_PROXIES"}},
		{name: "private proxies", in: map[string]string{"TRUSTED_PROXIES": " private "}},
		{name: "private proxies, and others", in: map[string]string{"TRUSTED_PROXIES": "private,10.0.0.0/8"}, want: []string{"TRUSTED_PROXIES"}},
		{name: "a URL with a query", in: map[string]string{"PUBLIC_URL": "https://a.example/?x=1"}, want: []string{"PUBLIC_URL"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c httpserver.Config
			err := config.Load(&c, tc.in)
			if len(tc.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			for _, variable := range tc.want {
				if err == nil || !strings.Contains(err.Error(), "\n  "+variable+" is ") {
					t.Errorf("%s is not reported in: %v", variable, err)
				}
			}
		})
	}
}

// TestWarnsOfNoTrustedProxies checks that a server logs a warning at its start if PUBLIC_URL is set, and neither
// TRUSTED_PROXIES nor EDGE_KEYS is.
func TestWarnsOfNoTrustedProxies(t *testing.T) {
	const warning = "PUBLIC_URL is set and TRUSTED_PROXIES is not"
	for _, tc := range []struct {
		name string
		in   map[string]string
		want bool
	}{
		{"a public URL alone", map[string]string{"PUBLIC_URL": "https://api.example.com"}, true},
		{"with proxies", map[string]string{"PUBLIC_URL": "https://api.example.com", "TRUSTED_PROXIES": "10.0.0.0/8"}, false},
		{"with private ones", map[string]string{"PUBLIC_URL": "https://api.example.com", "TRUSTED_PROXIES": "private"}, false},
		{"behind the edge", map[string]string{"PUBLIC_URL": "https://api.example.com", "EDGE_KEYS": "edge-key-0123456789abcdef"}, false},
		{"neither", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, setup{environ: tc.in, routes: func(rt *httpapi.Router) { rt.Get("/x", hello) }})
			if got := strings.Contains(s.log.String(), warning); got != tc.want {
				t.Errorf("warned: %v; want %v\n%s", got, tc.want, s.log)
			}
		})
	}
}

// TestSilentHandlerKeepsItsAnswer checks on HTTP/1 and HTTP/2 that a handler may be silent for longer than
// WRITE_TIMEOUT, which limits only the client.
func TestSilentHandlerKeepsItsAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, setup{environ: map[string]string{"WRITE_TIMEOUT": "1s"}, routes: func(rt *httpapi.Router) {
		rt.Get("/x", func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, "one ")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(1200 * time.Millisecond) // how long the handler is silent
			_, _ = io.WriteString(w, "two")
			return nil
		})
	}})
	for _, version := range []int{1, 2} {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(version == 1)
		protocols.SetUnencryptedHTTP2(version == 2)
		transport := &http.Transport{Protocols: protocols}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport, Timeout: waitTimeout}).Get(s.public + "/x")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if body, err := io.ReadAll(resp.Body); err != nil || resp.ProtoMajor != version || string(body) != "one two" {
			t.Errorf("HTTP/%d: %s: %q, %v", version, resp.Proto, body, err)
		}
	}
}

// TestTimeoutsDoNotOutliveTheirReason checks that READ_TIMEOUT and WRITE_TIMEOUT limit the network and not the handler.
// A handler may run for longer than both, and the connection can be used again after them.
func TestTimeoutsDoNotOutliveTheirReason(t *testing.T) {
	t.Parallel()
	internal := httpapi.NewRouter()
	internal.Post("/internal/things", func(w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		select {
		case <-r.Context().Done():
			return fmt.Errorf("the context ended: %w", context.Cause(r.Context()))
		case <-time.After(2200 * time.Millisecond):
		}
		return httpapi.WriteBody(w, r, "text/plain", body, "")
	})
	s := serve(t, setup{environ: map[string]string{"READ_TIMEOUT": "2s", "WRITE_TIMEOUT": "2s"}, internal: internal})
	conn := faulttest.Dial(t, s.internal)
	replies := bufio.NewReader(conn)
	for i := range 2 {
		if i > 0 {
			<-time.After(2100 * time.Millisecond) // the deadlines of the request before have passed now
		}
		if _, err := io.WriteString(conn, "POST /internal/things HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		goOn, err := http.ReadResponse(replies, nil)
		if err != nil || goOn.StatusCode != http.StatusContinue {
			t.Fatalf("asked to go on: %v, %v", goOn, err)
		}
		if _, err := io.WriteString(conn, "body"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(replies, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK || string(body) != "body" {
			t.Fatalf("%d %q, %v", resp.StatusCode, body, err)
		}
	}
}
