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

func collect(t *testing.T, c *Client, q EntryQuery) []string {
	t.Helper()
	var ids []string
	for e, err := range c.Entries(t.Context(), "pr_1", q) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.EntryID)
	}
	return ids
}

func TestEntriesFollowCursors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		total int
		in    Paging
		want  int
		first string
	}{
		{"many pages", 25, Paging{PageSize: 10}, 25, "e0"},
		{"pages end with the list", 20, Paging{PageSize: 10}, 20, "e0"},
		{"empty", 0, Paging{}, 0, ""},
		{"limit within a page", 25, Paging{PageSize: 10, Limit: 7}, 7, "e0"},
		{"limit across pages", 25, Paging{PageSize: 10, Limit: 17}, 17, "e0"},
		{"from a cursor", 25, Paging{PageSize: 10, Cursor: "20"}, 5, "e20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := serve(t, numbered(tt.total))
			got := collect(t, c, EntryQuery{Paging: tt.in})
			if len(got) != tt.want || tt.want > 0 && got[0] != tt.first {
				t.Errorf("got %d records %v, want %d from %q on", len(got), got, tt.want, tt.first)
			}
			slices.Sort(got)
			if len(slices.Compact(got)) != tt.want {
				t.Error("a record came twice")
			}
		})
	}
}

func TestRequestSaysWhatWasAsked(t *testing.T) {
	var got *http.Request
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { got = r }, WithAPIKey("rk_1"), WithUserAgent("test/1"))
	after := time.Date(2024, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600))
	if _, err := c.PageViewsPage(t.Context(), "p/ü 1", PageViewQuery{
		Paging: Paging{PageSize: 5, Cursor: "c+/="}, Direction: Ascending, UpdatedAfter: after, IncludeURLs: true,
		EmbeddableID: "e", ContactID: "a&b", GroupID: "g",
	}); err != nil {
		t.Fatal(err)
	}
	want := "/projects/p%2F%C3%BC%201/entries-page-views?contact_id=a%26b&cursor=c%2B%2F%3D&direction=ASC&embeddable_id=e&group_id=g&include_urls=true&limit=5&updated_after=2024-01-02T02%3A04%3A05.000006Z"
	if got.RequestURI != want {
		t.Errorf("asked for\n%s, want\n%s", got.RequestURI, want)
	}
	for name, want := range map[string]string{"X-Api-Key": "rk_1", "User-Agent": "test/1", "Accept": "application/x-ndjson"} {
		if got := got.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
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
		{"as told", []http.HandlerFunc{refuse(429, "3"), refuse(503, "1")}, DefaultRetry(), []time.Duration{3 * time.Second, time.Second}, false},
		{"doubling when not told", []http.HandlerFunc{refuse(503, ""), refuse(502, ""), refuse(504, "")}, DefaultRetry(),
			[]time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}, false},
		{"connection dropped", []http.HandlerFunc{drop}, DefaultRetry(), []time.Duration{100 * time.Millisecond}, false},
		{"cut within the body", []http.HandlerFunc{cut}, DefaultRetry(), []time.Duration{100 * time.Millisecond}, false},
		{"bounded", []http.HandlerFunc{refuse(503, ""), refuse(503, "")}, Retry{Attempts: 2, Base: time.Second, Longest: time.Minute},
			[]time.Duration{500 * time.Millisecond}, true},
		{"longer than allowed", []http.HandlerFunc{refuse(429, "3600")}, DefaultRetry(), nil, true},
		{"500 is final", []http.HandlerFunc{refuse(500, "")}, DefaultRetry(), nil, true},
		{"400 is final", []http.HandlerFunc{refuse(400, "")}, DefaultRetry(), nil, true},
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
	}, WithRetry(Retry{Attempts: 20, Base: time.Second, Longest: time.Minute}))
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

func TestIngesterSends(t *testing.T) {
	var body, uri, key string
	tries := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		b, _ := io.ReadAll(r.Body)
		body, uri, key = string(b), r.RequestURI, r.Header.Get("X-Api-Key")
		_, _ = io.WriteString(w, `{"stored":1,"existing":2,"rejected":1,"rejects":[{"line":3,"code":"invalid_record","message":"no"}]}`)
	}))
	defer server.Close()
	i, err := NewIngester(server.URL+"/", WithAPIKey("k"))
	if err != nil {
		t.Fatal(err)
	}
	i.sleep = func(context.Context, time.Duration) error { return nil }
	got, err := i.Send(t.Context(), "entries", []byte("{}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if body != "{}\n" || uri != "/internal/entries" || key != "k" {
		t.Errorf("sent %q to %q with %q", body, uri, key)
	}
	if got.Stored != 1 || got.Existing != 2 || got.Rejected != 1 || len(got.Rejects) != 1 || got.Rejects[0] != (Reject{3, "invalid_record", "no"}) {
		t.Errorf("receipt %+v", got)
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
