package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve starts a server with h, and returns a client for it. The client records its waits and does not sleep.
func serve(t *testing.T, h http.HandlerFunc, options ...Option) (*Client, *[]time.Duration) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := New(server.URL, options...)
	if err != nil {
		t.Fatal(err)
	}
	waits := &[]time.Duration{}
	c.sleep = func(ctx context.Context, d time.Duration) error {
		*waits = append(*waits, d)
		return ctx.Err()
	}
	c.jitter = func(time.Duration) time.Duration { return 0 }
	return c, waits
}

// numbered serves a list of total entries named e0, e1, …, paged by limit and cursor.
func numbered(total int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		to := min(from+limit, total)
		if to < total {
			w.Header().Set("X-Next-Cursor", strconv.Itoa(to))
		}
		for i := from; i < to; i++ {
			fmt.Fprintf(w, `{"entry_id":"e%d","created_at":"2024-01-01T00:00:00.25Z","entry_data":"{\"n\":%d}"}`+"\n", i, i)
		}
	}
}

func TestErrorIsTyped(t *testing.T) {
	c, waits := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "req-1")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"code":"entry_not_found","message":"No such entry."},"entryId":"e9"}`)
	})
	_, err := c.Entry(t.Context(), "pr_1", "e9")
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("got %v, want an *Error", err)
	}
	if e.Status != 404 || e.Code != "entry_not_found" || e.Message != "No such entry." || e.RequestID != "req-1" || e.Context["entryId"] != "e9" {
		t.Errorf("got %+v", e)
	}
	if got, want := e.Error(), "No such entry. (entry_not_found, HTTP 404, request req-1)"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if Code(fmt.Errorf("wrapped: %w", err)) != "entry_not_found" {
		t.Error("Code does not see through wrapping")
	}
	if len(*waits) != 0 {
		t.Errorf("a final answer was asked for again after %v", *waits)
	}
}

// TestHistoryLostIsTyped checks that a reader learns the ends of a lost stretch.
func TestHistoryLostIsTyped(t *testing.T) {
	for _, tt := range []struct{ fields, want string }{
		{`,"after":1641027871250000,"until":1641031471250001`, "after 1641027871250000 and before 1641031471250001"},
		{`,"after":0,"until":null`, "after 0"},
		{``, ""}, // another 410
	} {
		c, waits := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusGone)
			_, _ = io.WriteString(w, `{"error":{"code":"history_lost","message":"Lost."},"projectId":"pr_1"`+tt.fields+`}`)
		})
		_, err := c.ChangesPage(t.Context(), "pr_1", ChangeQuery{Cursor: "c"})
		got := ""
		if lost, ok := errors.AsType[*HistoryLostError](err); ok {
			got = lost.Stretch()
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Status != 410 || got != tt.want || Code(err) != CodeHistoryLost || len(*waits) != 0 {
			t.Errorf("%v, %q after %v; want %q", err, got, *waits, tt.want)
		}
	}
}

func TestRetry(t *testing.T) {
	refuse := func(status int, after string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(status)
		}
	}
	cut := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"entry_id":"half"}`+"\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	drop := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for _, tt := range []struct {
		name  string
		in    []http.HandlerFunc // one for each attempt, followed by a page of two
		retry Retry
		waits []time.Duration
		fails bool
	}{
		{"as told", []http.HandlerFunc{refuse(429, "3"), refuse(503, "1")}, Retry{}, []time.Duration{3 * time.Second, time.Second}, false},
		{"doubling when not told", []http.HandlerFunc{refuse(503, ""), refuse(502, ""), refuse(504, "")}, Retry{},
			[]time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}, false},
		{"connection dropped", []http.HandlerFunc{drop}, Retry{}, []time.Duration{100 * time.Millisecond}, false},
		{"cut within the body", []http.HandlerFunc{cut}, Retry{}, []time.Duration{100 * time.Millisecond}, false},
		{"bounded", []http.HandlerFunc{refuse(503, ""), refuse(503, "")}, Retry{Attempts: 2, Base: time.Second, Longest: time.Minute},
			[]time.Duration{500 * time.Millisecond}, true},
		{"longer than allowed", []http.HandlerFunc{refuse(429, "3600")}, Retry{}, nil, true},
		{"500 is final", []http.HandlerFunc{refuse(500, "")}, Retry{}, nil, true},
		{"400 is final", []http.HandlerFunc{refuse(400, "")}, Retry{}, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls atomic.Int32
			c, waits := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if n := int(calls.Add(1)); n <= len(tt.in) {
					tt.in[n-1](w, r)
					return
				}
				numbered(2)(w, r)
			}, WithRetry(tt.retry))
			page, err := c.EntriesPage(t.Context(), "pr_1", EntryQuery{})
			if (err != nil) != tt.fails {
				t.Fatalf("error %v, want one: %v", err, tt.fails)
			}
			if err == nil && (len(page.Records) != 2 || page.Records[0].EntryID != "e0") {
				t.Errorf("got %+v, want e0 and e1", page.Records)
			}
			if !slices.Equal(*waits, tt.waits) {
				t.Errorf("waited %v, want %v", *waits, tt.waits)
			}
		})
	}
}

func TestJitterNeverComesEarly(t *testing.T) {
	c, waits := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(429)
	}, WithRetry(Retry{Attempts: 20}))
	c.jitter = randomJitter
	if _, err := c.EntriesPage(t.Context(), "p", EntryQuery{}); Code(err) != "" || err == nil {
		t.Fatal(err)
	}
	if len(*waits) != 19 {
		t.Fatalf("%d waits, want 19", len(*waits))
	}
	for _, d := range *waits {
		if d < 2*time.Second || d > 4*time.Second {
			t.Errorf("waited %v, want 2 s to 4 s", d)
		}
	}
	if slices.Min(*waits) == slices.Max(*waits) {
		t.Error("all waits are equal: no jitter")
	}
}

// TestForever checks that a request is sent until it succeeds, far beyond the default number of attempts.
func TestForever(t *testing.T) {
	asked := 0
	c, waits := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked <= 100 {
			w.WriteHeader(503)
			return
		}
		numbered(1)(w, r)
	}, WithRetry(Retry{Attempts: Forever}))
	if page, err := c.EntriesPage(t.Context(), "p", EntryQuery{}); err != nil || len(page.Records) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	if len(*waits) != 100 || slices.Max(*waits) != time.Minute {
		t.Errorf("%d waits, the longest %v; want 100 of at most a minute (half of the longest, without jitter)", len(*waits), slices.Max(*waits))
	}
}

// TestSilenceEndsAttempt checks the time-outs: a server that does not answer, and one that falls silent within a body.
func TestSilenceEndsAttempt(t *testing.T) {
	for _, tt := range []struct {
		name     string
		in       string // what is sent before the silence
		timeouts Timeouts
	}{
		{"no answer", "", Timeouts{Answer: 50 * time.Millisecond}},
		{"half a body", `{"entry_id":"half"}` + "\n", Timeouts{Silence: 50 * time.Millisecond}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked atomic.Int32
			c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) > 1 {
					numbered(2)(w, r)
					return
				}
				if tt.in != "" {
					_, _ = io.WriteString(w, tt.in)
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			}, WithTimeouts(tt.timeouts), WithRetry(Retry{Attempts: Forever}))
			page, err := c.EntriesPage(t.Context(), "p", EntryQuery{})
			if err != nil || len(page.Records) != 2 || page.Records[0].EntryID != "e0" {
				t.Errorf("%+v, %v", page, err)
			}
		})
	}
}

// TestRequestID checks that a call reports the id of its answer, be it a success or a refusal.
func TestRequestID(t *testing.T) {
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "of "+r.URL.Path)
		if strings.HasSuffix(r.URL.Path, "/none") {
			w.WriteHeader(404)
			return
		}
		_, _ = io.WriteString(w, "{}")
	})
	var id string
	ctx := StoreRequestID(t.Context(), &id)
	if _, err := c.Entry(ctx, "p", "e"); err != nil || id != "of /projects/p/entries/e" {
		t.Errorf("%q, %v", id, err)
	}
	if _, err := c.Entry(ctx, "p", "none"); err == nil || id != "of /projects/p/entries/none" {
		t.Errorf("%q, %v", id, err)
	}
}

func TestWaitEndsWithContext(t *testing.T) {
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(503)
	})
	ctx, cancel := context.WithCancel(t.Context())
	c.sleep = func(ctx context.Context, d time.Duration) error {
		cancel()
		return sleep(ctx, d)
	}
	_, err := c.Entry(ctx, "p", "e")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
}

func TestCutIsNeverTakenForWhole(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   string // the raw answer
		want error
	}{
		{"chunks without their end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n", ErrIncomplete},
		{"shorter than said", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}\n", ErrIncomplete},
		{"a line without its end", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}\n{}", ErrIncomplete},
		{"end by closing", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}\n", nil},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\n{}\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, tt.in)
			}, WithRetry(Retry{Attempts: 1}))
			_, err := c.EntriesPage(t.Context(), "p", EntryQuery{})
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want a failure with %v", err, tt.want)
			}
		})
	}
}

func TestRedirectDoesNotCarryTheKey(t *testing.T) {
	var asked atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	defer elsewhere.Close()
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusFound)
	}, WithAPIKey("rk_secret"))
	_, err := c.Entry(t.Context(), "p", "e")
	if err == nil || !strings.Contains(err.Error(), "redirect") {
		t.Errorf("got %v, want an error that names the redirect", err)
	}
	if asked.Load() {
		t.Error("the redirect was followed")
	}
}

func TestNewRefuses(t *testing.T) {
	for _, in := range []string{"", "example.com", "ftp://example.com", "http://", "http://h/?a=1", "http://u:p@h", "http://h/#f", ":"} {
		if _, err := New(in); err == nil {
			t.Errorf("New(%q): no error", in)
		} else if strings.Contains(err.Error(), "u:p") {
			t.Errorf("New(%q) tells the password", in)
		}
	}
}

// zeros is a body without an end, such as a short compressed answer may become.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestLongestBody checks that a body without an end does not fill the memory.
func TestLongestBody(t *testing.T) {
	if _, err := readBody(zeros{}); err == nil || !strings.Contains(err.Error(), "longer than 256 MiB") {
		t.Errorf("a body without an end became %v", err)
	}
}
