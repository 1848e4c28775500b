package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lectern-dev/lectern/services/region/client"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

const key = "internal-key-0123456789"

// service is a fake region service whose answer a test sets.
type service struct {
	*httptest.Server
	asked  atomic.Int64
	answer atomic.Pointer[http.HandlerFunc]
}

func serve(t testing.TB, answer http.HandlerFunc) *service {
	t.Helper()
	s := &service{}
	s.answer.Store(&answer)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		(*s.answer.Load())(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) now(answer http.HandlerFunc) { s.answer.Store(&answer) }

func region(name string, offset int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"region":%q,"offsetInMinutes":%d}`, name, offset)
	}
}

func refuse(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "req-1")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"code":%q,"message":"said so"}}`, code)
	}
}

func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		conn.Close()
	}
}

// open returns a client of a service. Unless the test sets a timeout, it is long enough for a busy machine.
func open(t testing.TB, address string, o client.Options) *client.Client {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	c, err := client.New(address, key, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// clock is a clock that a test advances.
type clock struct{ moved atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_700_000_000, c.moved.Load()) }
func (c *clock) advance(d time.Duration) { c.moved.Add(int64(d)) }

func TestRequest(t *testing.T) {
	var got struct {
		method, path, key, contentType string
		body                           map[string]string
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got.method, got.path, got.key, got.contentType = r.Method, r.URL.Path, r.Header.Get("x-api-key"), r.Header.Get("Content-Type")
		got.body = nil
		if err := json.NewDecoder(r.Body).Decode(&got.body); err != nil {
			t.Error(err)
		}
		region("Asia/Kathmandu", 345)(w, r)
	})
	c := open(t, s.URL+"/", client.Options{})
	where, err := c.Lookup(t.Context(), `pr_"1"`)
	if want := (client.Region{Name: "Asia/Kathmandu", OffsetMinutes: 345}); err != nil || where != want {
		t.Errorf("%+v, %v", where, err)
	}
	if got.method != "POST" || got.path != "/api/projects/region" || got.key != key || got.contentType != "application/json" ||
		len(got.body) != 1 || got.body["projectId"] != `pr_"1"` {
		t.Errorf("%+v", got)
	}
	at := time.Date(2022, 1, 1, 2, 0, 0, 250_000_000, time.FixedZone("", 7200))
	if _, err := c.LookupAt(t.Context(), "pr_1", at); err != nil || got.body["at"] != "2022-01-01T00:00:00.25Z" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWarmAsksNobody(t *testing.T) {
	s := serve(t, region("UTC", 0))
	c := open(t, s.URL, client.Options{})
	for range 100 {
		if _, err := c.Lookup(t.Context(), "pr_1"); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestRenewedBehindCallers(t *testing.T) {
	now := &clock{}
	s := serve(t, region("UTC", 0))
	c := open(t, s.URL, client.Options{Now: now.now, Fresh: 10 * time.Second, Stale: time.Minute})
	name := func() string {
		t.Helper()
		where, err := c.Lookup(t.Context(), "pr_1")
		if err != nil {
			t.Fatal(err)
		}
		return where.Name
	}
	name()
	s.now(region("Asia/Tokyo", 540))
	now.advance(9 * time.Second)
	if got := name(); got != "UTC" || s.asked.Load() != 1 {
		t.Errorf("fresh: %s after %d requests", got, s.asked.Load())
	}
	now.advance(2 * time.Second)
	if got := name(); got != "UTC" {
		t.Errorf("stale: %s, which the caller would have waited for", got)
	}
	eventually.True(t, "the new region is served", func() bool { return name() == "Asia/Tokyo" })
	s.now(region("Europe/Berlin", 60))
	now.advance(61 * time.Second)
	if got := name(); got != "Europe/Berlin" {
		t.Errorf("past the stale time: %s", got)
	}
}

// TestServiceGone checks that a region that is not too old is served without delay while the service is down. The
// service gets few requests.
func TestServiceGone(t *testing.T) {
	now := &clock{}
	s := serve(t, region("UTC", 0))
	c := open(t, s.URL, client.Options{Now: now.now, Fresh: time.Second, Stale: time.Minute})
	if _, err := c.Lookup(t.Context(), "pr_1"); err != nil {
		t.Fatal(err)
	}
	s.now(hangUp)
	now.advance(2 * time.Second)
	for range 100 {
		if where, err := c.Lookup(t.Context(), "pr_1"); err != nil || where.Name != "UTC" {
			t.Fatal(where, err)
		}
	}
	if _, err := c.Lookup(t.Context(), "pr_cold"); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("a cold project: %v", err)
	}
	now.advance(time.Minute)
	if _, err := c.Lookup(t.Context(), "pr_1"); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("past the stale time: %v", err)
	}
	if n := s.asked.Load(); n > 1+3*4 {
		t.Errorf("a service that is down got %d requests for three look-ups", n)
	}
	s.now(region("UTC", 0))
	if _, err := c.Lookup(t.Context(), "pr_1"); err != nil {
		t.Errorf("when it is back: %v", err)
	}
}

func TestRepeats(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first http.HandlerFunc
		want  int64 // requests
		err   error // of the look-up; nil: it succeeds
	}{
		{"503", refuse(503, "unavailable"), 3, nil},
		{"connection lost", hangUp, 3, nil},
		{"500", refuse(500, "internal"), 1, &client.Error{Status: 500, Code: "internal", Message: "said so", RequestID: "req-1"}},
		{"400", refuse(400, "invalid_body"), 1, &client.Error{Status: 400, Code: "invalid_body", Message: "said so", RequestID: "req-1"}},
		{"401", refuse(401, "unauthorized"), 1, client.ErrUnauthorized},
		{"429", refuse(429, "rate_limited"), 1, &client.Error{Status: 429, Code: "rate_limited", Message: "said so", RequestID: "req-1"}},
		{"HTML", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, 1, &client.Error{Status: 200, Message: "the answer is no region"}},
		{"no offset", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"region":"UTC"}`) }, 1, &client.Error{Status: 200, Message: "the answer is no region"}},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, 1, &client.Error{Status: 307, Message: "Temporary Redirect"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, nil)
			s.now(func(w http.ResponseWriter, r *http.Request) {
				if s.asked.Load() <= 2 {
					tc.first(w, r)
				} else {
					region("UTC", 0)(w, r)
				}
			})
			where, err := open(t, s.URL, client.Options{}).Lookup(t.Context(), "pr_1")
			var want, got *client.Error
			switch {
			case tc.err == nil:
				if err != nil || where.Name != "UTC" {
					t.Errorf("%+v, %v", where, err)
				}
			case errors.As(tc.err, &want):
				if !errors.As(err, &got) || *got != *want {
					t.Errorf("%v, want %v", err, want)
				}
			case !errors.Is(err, tc.err):
				t.Errorf("%v, want %v", err, tc.err)
			}
			if n := s.asked.Load(); n != tc.want {
				t.Errorf("%d requests, want %d", n, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), key) {
				t.Errorf("%v shows the key", err)
			}
		})
	}
}

// TestRetryAfter checks that the client does not retry if Retry-After is longer than the remaining time.
func TestRetryAfter(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3600")
		refuse(503, "unavailable")(w, r)
	})
	start := time.Now()
	_, err := open(t, s.URL, client.Options{}).Lookup(t.Context(), "pr_1")
	if !errors.Is(err, client.ErrUnavailable) || time.Since(start) > 4*time.Minute || s.asked.Load() != 1 {
		t.Errorf("%v after %v and %d requests", err, time.Since(start), s.asked.Load())
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = open(t, "http://"+l.Addr().String(), client.Options{Timeout: time.Second}).Lookup(t.Context(), "pr_1")
	if !errors.Is(err, client.ErrUnavailable) {
		t.Error(err)
	}
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	start := time.Now()
	_, err := open(t, s.URL, client.Options{Timeout: 50 * time.Millisecond}).Lookup(t.Context(), "pr_1")
	if !errors.Is(err, client.ErrUnavailable) || time.Since(start) > time.Minute {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

// waiter is the context of a caller. It counts the callers that wait for an answer: they ask when the context is done
// after they joined the request.
type waiter struct {
	context.Context
	waiting *atomic.Int64
}

func (w waiter) Done() <-chan struct{} {
	w.waiting.Add(1)
	return w.Context.Done()
}

// TestOneFlight checks that other callers still get the answer if the caller that began the request gives up.
func TestOneFlight(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { <-release; region("UTC", 0)(w, r) })
	c := open(t, s.URL, client.Options{})
	ctx, leave := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { _, err := c.Lookup(ctx, "pr_1"); first <- err }()
	eventually.True(t, "the service is asked", func() bool { return s.asked.Load() == 1 })
	var others sync.WaitGroup
	var waiting atomic.Int64
	for range 20 {
		others.Go(func() {
			if _, err := c.Lookup(waiter{t.Context(), &waiting}, "pr_1"); err != nil {
				t.Error(err)
			}
		})
	}
	eventually.True(t, "all twenty wait", func() bool { return waiting.Load() == 20 })
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	others.Wait()
	if n := s.asked.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestSizeIsBounded(t *testing.T) {
	s := serve(t, region("UTC", 0))
	c := open(t, s.URL, client.Options{Size: 10})
	look := func(project string) {
		t.Helper()
		if _, err := c.Lookup(t.Context(), project); err != nil {
			t.Fatal(err)
		}
	}
	look("hot")
	for i := range 500 {
		look(fmt.Sprint(i))
		look("hot")
	}
	if n := s.asked.Load(); n > 501+250 {
		t.Errorf("%d requests: regions in use are not cached", n)
	}
	before := s.asked.Load()
	for i := range 500 {
		look(fmt.Sprint(i))
	}
	// The cache evicts in the background, so it may hold more for a moment.
	if n := s.asked.Load() - before; n < 250 {
		t.Errorf("%d requests for 500 projects, of which 10 are remembered", n)
	}
}

// TestKeepsConnections checks that 50 requests in a row reuse connections. http.Transport closes a connection if it
// does not learn within 50 ms after the answer that the request was written. So a busy machine may need more than one.
func TestKeepsConnections(t *testing.T) {
	var connections sync.Map
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		connections.Store(r.RemoteAddr, true)
		region("UTC", 0)(w, r)
	})
	c := open(t, s.URL, client.Options{})
	for i := range 50 {
		if _, err := c.Lookup(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	made := 0
	connections.Range(func(any, any) bool { made++; return true })
	if made > 25 {
		t.Errorf("%d connections for 50 requests in a row", made)
	}
}

func TestSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	var parents []string
	s := serve(t, nil)
	s.now(func(w http.ResponseWriter, r *http.Request) {
		parents = append(parents, r.Header.Get("Traceparent"))
		if s.asked.Load() == 1 {
			refuse(503, "unavailable")(w, r)
			return
		}
		region("UTC", 0)(w, r)
	})
	c := open(t, s.URL, client.Options{Tracer: provider})
	ctx, caller := provider.Tracer("test").Start(t.Context(), "caller")
	if _, err := c.Lookup(ctx, "pr_secret"); err != nil {
		t.Fatal(err)
	}
	caller.End()
	ended := spans.Ended()
	if len(ended) != 3 || ended[0].Status().Code != codes.Error || ended[1].Status().Code == codes.Error {
		t.Fatalf("%d spans", len(ended))
	}
	for i, span := range ended[:2] {
		if span.Parent().SpanID() != caller.SpanContext().SpanID() || !strings.Contains(parents[i], span.SpanContext().SpanID().String()) {
			t.Errorf("request %d is not part of the caller's trace", i)
		}
		if shown := fmt.Sprint(span.Name(), span.Attributes(), span.Status()); strings.Contains(shown, key) || strings.Contains(shown, "pr_secret") {
			t.Errorf("%s shows what it should not", shown)
		}
	}
}

func TestClose(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	c, err := client.New(s.URL, key, client.Options{Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error)
	go func() { _, err := c.Lookup(t.Context(), "pr_1"); waiting <- err }()
	eventually.True(t, "the service is asked", func() bool { return s.asked.Load() == 1 })
	c.Close()
	if err := <-waiting; !errors.Is(err, client.ErrClosed) {
		t.Errorf("who waited got %v", err)
	}
	if _, err := c.Lookup(t.Context(), "pr_1"); !errors.Is(err, client.ErrClosed) {
		t.Errorf("Lookup afterwards: %v", err)
	}
	if _, err := c.LookupAt(t.Context(), "pr_1", time.Now()); !errors.Is(err, client.ErrClosed) {
		t.Errorf("LookupAt afterwards: %v", err)
	}
	c.Close()
}

func TestNewRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, address, key string
		options            client.Options
	}{
		{"no address", "", key, client.Options{}},
		{"no scheme", "region:8080", key, client.Options{}},
		{"another scheme", "ftp://region", key, client.Options{}},
		{"a query", "http://region?x=1", key, client.Options{}},
		{"no key", "http://region", "", client.Options{}},
		{"stale before fresh", "http://region", key, client.Options{Fresh: time.Minute, Stale: time.Second}},
		{"negative", "http://region", key, client.Options{Timeout: -1}},
	} {
		if c, err := client.New(tc.address, tc.key, tc.options); err == nil {
			c.Close()
			t.Errorf("%s: no error", tc.name)
		}
	}
}

func BenchmarkLookupWarm(b *testing.B) {
	s := serve(b, region("UTC", 0))
	c := open(b, s.URL, client.Options{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Lookup(b.Context(), "pr_1"); err != nil {
				b.Error(err)
			}
		}
	})
}
