package region

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// world is a region service that a test controls, and a cache over it with a clock that a test advances.
type world struct {
	*Cache
	asked  atomic.Int64
	answer atomic.Pointer[http.HandlerFunc]
	moved  atomic.Int64
	failed atomic.Int64
}

func start(t testing.TB, o Options) *world {
	t.Helper()
	w := &world{}
	w.answers(zone("Europe/Berlin"))
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		(*w.answer.Load())(rw, r)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, client.WithAPIKey("internal"), client.WithRetry(client.Retry{Attempts: 1}))
	if err != nil {
		t.Fatal(err)
	}
	o.Timeout = time.Hour
	o.Now = func() time.Time {
		return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(w.moved.Load()))
	}
	o.Failed = func(string, error) { w.failed.Add(1) }
	w.Cache = New(c, o)
	return w
}

func (w *world) answers(h http.HandlerFunc) { w.answer.Store(&h) }
func (w *world) advance(d time.Duration)    { w.moved.Add(int64(d)) }
func (w *world) requests(t *testing.T, n int64) {
	t.Helper()
	if got := w.asked.Load(); got != n {
		t.Errorf("%d requests, want %d", got, n)
	}
}

func (w *world) is(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	if where, err := w.Lookup(ctx, "pr_1"); err != nil || where.Name != name {
		t.Fatalf("%q, %v; want %q", where.Name, err, name)
	}
}

// becomes waits until the region of pr_1 has a name.
func (w *world) becomes(t *testing.T, name string) {
	t.Helper()
	wait(t, func() bool {
		where, err := w.Lookup(t.Context(), "pr_1")
		return err == nil && where.Name == name
	})
}

func zone(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Region-Source", "project")
		fmt.Fprintf(w, `{"region":%q,"offsetInMinutes":0}`, name)
	}
}

func down(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func refusing(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(400)
	fmt.Fprint(w, `{"error":{"code":"invalid_body","message":"no"}}`)
}

// TestOffsetsNeedNoRequest checks that one request is enough for every offset of a project, past and future, before and
// after a change of daylight saving.
func TestOffsetsNeedNoRequest(t *testing.T) {
	w := start(t, Options{})
	for at, want := range map[string]int{"2026-01-01T00:00:00Z": 60, "2026-07-01T00:00:00Z": 120, "1890-01-01T00:00:00Z": 53, "2026-03-29T00:59:59Z": 60, "2026-03-29T01:00:00Z": 120} {
		moment, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		where, err := w.LookupAt(t.Context(), "pr_1", moment)
		if want := (client.Region{Name: "Europe/Berlin", OffsetMinutes: want, Source: client.RegionOfProject}); err != nil || where != want {
			t.Errorf("%s: %+v, %v; want %+v", at, where, err, want)
		}
	}
	w.requests(t, 1)
}

// TestRenewal checks the ages of a zone: fresh, renewed in the background, and too old to serve without waiting.
func TestRenewal(t *testing.T) {
	w := start(t, Options{Fresh: time.Minute})
	w.is(t, "Europe/Berlin")
	w.answers(zone("Asia/Tokyo"))
	w.advance(59 * time.Second)
	w.is(t, "Europe/Berlin")
	w.requests(t, 1)
	w.advance(2 * time.Second)
	w.is(t, "Europe/Berlin") // it does not wait
	w.becomes(t, "Asia/Tokyo")
	w.requests(t, 2)
	w.answers(zone("UTC"))
	w.advance(2 * time.Minute)
	w.is(t, "UTC")
}

// TestServiceDown checks that known projects are served for hours without the service, which gets few requests. New zones
// are served once it is back.
func TestServiceDown(t *testing.T) {
	w := start(t, Options{Keep: 24 * time.Hour})
	w.is(t, "Europe/Berlin")
	w.answers(down)
	for hour := range int64(23) {
		w.advance(time.Hour)
		for range 10 {
			w.is(t, "Europe/Berlin")
		}
		wait(t, func() bool { return w.failed.Load() == hour+1 })
	}
	w.requests(t, 24)
	if _, err := w.Lookup(t.Context(), "pr_unknown"); err == nil {
		t.Error("an unknown project has a region")
	}
	w.answers(zone("Asia/Tokyo"))
	w.advance(pause)
	w.becomes(t, "Asia/Tokyo")
	w.answers(down)
	w.advance(25 * time.Hour)
	if where, err := w.Lookup(t.Context(), "pr_1"); err == nil {
		t.Errorf("%+v after a day", where)
	}
}

// TestSilentService checks a service that accepts requests and never answers. After the first failure, no look-up of a
// known project waits for it, and one request at a time asks it.
func TestSilentService(t *testing.T) {
	w := start(t, Options{})
	w.is(t, "Europe/Berlin")
	if _, err := w.Lookup(t.Context(), "pr_2"); err != nil {
		t.Fatal(err)
	}
	w.answers(down)
	w.advance(time.Hour)
	w.is(t, "Europe/Berlin")
	w.requests(t, 3)
	release := make(chan struct{})
	answer := sync.OnceFunc(func() { close(release) })
	defer answer()
	w.answers(func(rw http.ResponseWriter, r *http.Request) { <-release; zone("UTC")(rw, r) })
	for range 10 {
		w.advance(pause)
		w.is(t, "Europe/Berlin")
		wait(t, func() bool { return w.asked.Load() >= 4 })
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		if where, err := w.Lookup(ctx, "pr_2"); err != nil || where.Name != "Europe/Berlin" {
			t.Errorf("%+v, %v", where, err)
		}
		cancel()
	}
	w.requests(t, 4)
	answer()
	w.becomes(t, "UTC")
}

// TestFaultOfOneProject checks that a project that the service refuses, or whose zone this program does not have, does not
// keep others from being renewed.
func TestFaultOfOneProject(t *testing.T) {
	for name, fault := range map[string]http.HandlerFunc{"refused": refusing, "unknown zone": zone("Mars/Olympus")} {
		t.Run(name, func(t *testing.T) {
			w := start(t, Options{})
			w.is(t, "Europe/Berlin")
			w.advance(time.Hour)
			w.answers(fault)
			if where, err := w.Lookup(t.Context(), "pr_2"); err == nil {
				t.Errorf("%+v", where)
			}
			w.answers(zone("UTC"))
			w.is(t, "UTC")
		})
	}
}

// TestRequestID checks that a request in the background writes no id after its look-up has returned.
func TestRequestID(t *testing.T) {
	w := start(t, Options{})
	w.is(t, "Europe/Berlin")
	w.answers(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Request-Id", "req_1")
		zone("UTC")(rw, r)
	})
	w.advance(31 * time.Second)
	id := ""
	if _, err := w.Lookup(client.StoreRequestID(t.Context(), &id), "pr_1"); err != nil {
		t.Fatal(err)
	}
	w.becomes(t, "UTC")
	if id != "" {
		t.Errorf("it wrote %q", id)
	}
}

// TestOneRequest checks that callers share a request, and get its answer if the caller that began it gives up.
func TestOneRequest(t *testing.T) {
	w := start(t, Options{})
	release := make(chan struct{})
	w.answers(func(rw http.ResponseWriter, r *http.Request) { <-release; zone("UTC")(rw, r) })
	ctx, leave := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { _, err := w.Lookup(ctx, "pr_1"); first <- err }()
	wait(t, func() bool { return w.asked.Load() == 1 })
	var others sync.WaitGroup
	for range 20 {
		others.Go(func() {
			if where, err := w.Lookup(t.Context(), "pr_1"); err != nil || where.Name != "UTC" {
				t.Errorf("%+v, %v", where, err)
			}
		})
	}
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	others.Wait()
	w.requests(t, 1)
}

// TestSize checks that the cache drops the project that was used least recently.
func TestSize(t *testing.T) {
	w := start(t, Options{Size: 2})
	for _, project := range []string{"a", "b", "a", "c", "a", "b"} {
		if _, err := w.Lookup(t.Context(), project); err != nil {
			t.Fatal(err)
		}
	}
	w.requests(t, 4)
	if got := slices.Sorted(func(yield func(string) bool) {
		for id := range w.known {
			if !yield(id) {
				return
			}
		}
	}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q are cached", got)
	}
}

// wait waits until ok.
func wait(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(4 * time.Minute); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}
