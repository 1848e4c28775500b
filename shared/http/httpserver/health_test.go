package httpserver_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/telemetry"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

func TestReadiness(t *testing.T) {
	well := func(context.Context) error { return nil }
	failing := func(context.Context) error { return errors.New("dial db-7.internal:5432: refused") }
	hanging := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, tc := range []struct {
		name   string
		in     []httpserver.Check
		status int
		body   string
	}{
		{"no checks", nil, 200, `{"status":"ready","checks":{}}`},
		{"all well", []httpserver.Check{{"postgres", true, well}, {"redis", false, well}}, 200, `{"status":"ready","checks":{"postgres":"ok","redis":"ok"}}`},
		{"an optional one fails", []httpserver.Check{{"postgres", true, well}, {"redis", false, failing}}, 200, `{"status":"ready","checks":{"postgres":"ok","redis":"failing"},"causes":{"redis":"see the log"}}`},
		{"a required one fails", []httpserver.Check{{"postgres", true, failing}, {"redis", false, well}}, 503, `{"status":"not ready","checks":{"postgres":"failing","redis":"ok"},"causes":{"postgres":"see the log"}}`},
		{"a required one hangs", []httpserver.Check{{"postgres", true, hanging}}, 503, `{"status":"not ready","checks":{"postgres":"failing"},"causes":{"postgres":"no answer in time: the address may be wrong, or a NetworkPolicy or firewall may drop what is sent"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, setup{checks: tc.in})
			resp, body := s.get(t, s.internal+"/readyz")
			if resp.StatusCode != tc.status || body != tc.body+"\n" {
				t.Errorf("/readyz: %d %s, want %d %s", resp.StatusCode, body, tc.status, tc.body)
			}
			if resp, body := s.get(t, s.internal+"/healthz"); resp.StatusCode != http.StatusOK || body != `{"status":"ok"}`+"\n" {
				t.Errorf("/healthz: %d %s", resp.StatusCode, body)
			}
			if head, _ := s.do(t, http.MethodHead, s.internal+"/readyz"); head.StatusCode != tc.status {
				t.Errorf("HEAD /readyz: %d", head.StatusCode)
			}
		})
	}
}

// TestFailureIsLoggedAgain checks that a check that fails from the start is logged at once, and again after longer and longer pauses.
func TestFailureIsLoggedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		tel := &telemetry.Telemetry{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		cause := "refused"
		h := httpserver.Operational(tel, httpserver.Check{Name: "postgres", Required: true, Probe: func(context.Context) error { return httpserver.Cause(cause) }})
		lines := func() int {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/readyz", nil))
			return strings.Count(log.String(), "check fails")
		}
		var got []int
		for range 5 * 60 {
			got = append(got, lines())
			time.Sleep(time.Second)
		}
		if first, minute, two, all := got[0], got[59], got[60], got[len(got)-1]; first != 1 || minute != 1 || two != 2 || all != 3 {
			t.Errorf("%d lines at once, %d and %d after a minute, %d in five; want 1, 1, 2, 3", first, minute, two, all)
		}
		cause = "a wrong password"
		if lines() != 4 {
			t.Error("another cause is not logged")
		}
	})
}

func TestReadinessIsAskedSeldomAndChangesAreLogged(t *testing.T) {
	var asked atomic.Int64
	var down atomic.Bool
	s := serve(t, setup{checks: []httpserver.Check{{Name: "postgres", Required: true, Probe: func(context.Context) error {
		asked.Add(1)
		if down.Load() {
			return errors.New("refused")
		}
		return nil
	}}}})
	start := time.Now()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			resp, err := s.client.Get(s.internal + "/readyz")
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
		})
	}
	all.Wait()
	if most := int64(time.Since(start)/(500*time.Millisecond)) + 1; asked.Load() > most {
		t.Errorf("50 requests asked %d times, want at most %d", asked.Load(), most)
	}
	status := func(want int) {
		t.Helper()
		eventually.True(t, "/readyz changes", func() bool {
			resp, _ := s.get(t, s.internal+"/readyz")
			return resp.StatusCode == want
		})
	}
	down.Store(true)
	status(503)
	down.Store(false)
	status(200)
	if got := len(s.lines(t, "check fails")); got != 1 {
		t.Errorf("the fault was logged %d times, want once", got)
	}
	if got := len(s.lines(t, "check passes again")); got != 1 {
		t.Errorf("the recovery was logged %d times, want once", got)
	}
}

func TestMetrics(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, setup{routes: func(rt *httpapi.Router) {
		routes(rt)
		rt.Get("/waits", func(http.ResponseWriter, *http.Request) error { close(inside); <-leave; return nil })
	}})
	for range 3 {
		s.get(t, s.public+"/projects/p1/things")
	}
	s.get(t, s.public+"/nowhere")
	s.get(t, s.public+"/panic")
	s.do(t, "BREW", s.public+"/denied")
	done := make(chan struct{})
	go func() {
		defer close(done)
		resp, err := s.client.Get(s.public + "/waits")
		if err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-inside
	_, body := s.get(t, s.internal+"/metrics")
	close(leave)
	<-done
	for _, want := range []string{
		`http_server_request_duration_seconds_count\{.*http_request_method="GET",http_response_status_code="200",http_route="/projects/\{projectId\}/things",listener="public"\} 3\n`,
		`http_server_request_duration_seconds_count\{.*http_request_method="GET",http_response_status_code="404",http_route="",listener="public"\} 1\n`,
		`http_server_request_duration_seconds_count\{.*http_response_status_code="500",http_route="/panic",.*\} 1\n`,
		`http_server_request_duration_seconds_count\{.*http_request_method="_OTHER",http_response_status_code="405",.*\} 1\n`,
		`http_server_response_size_bytes_total\{.*http_route="/projects/\{projectId\}/things",.*\} 51\n`,
		`http_server_active_requests\{listener="public"\} 1\n`,
		`lectern_build_info\{.*\} 1\n`,
		`go_goroutine_count .*\n`,
		`process_resident_memory_bytes .*\n`,
	} {
		if !regexp.MustCompile(want).MatchString(body) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, "go_goroutines ") || strings.Contains(body, "p1") {
		t.Error("the metrics have values that they should not have")
	}
}
