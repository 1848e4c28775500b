package consoletest

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lectern-dev/lectern/shared/routes"
)

// front is a proxy between a browser and the local run. Each front has its own origin, so tests share no browser
// storage.
type front struct {
	*httptest.Server
	run http.Handler
	// console serves the files of the console in place of the run's, if it is set. provider is the origin of the OpenID
	// provider with which its visitors sign in. Both are set before the first request.
	console  http.Handler
	provider string

	mu       sync.Mutex
	faults   []*fault
	requests []*http.Request
}

// fault makes the front answer requests itself instead of passing them on, until the test ends it. A browser asks as
// often as it likes, so a fault of a number of requests could be over before the page shows it.
type fault struct {
	// part selects requests by a part of their path. "" selects all requests of the API, but no scripts.
	part  string
	serve func(w http.ResponseWriter, r *http.Request, run http.Handler)
}

func newFront(t *testing.T, w *world) *front {
	t.Helper()
	target, err := url.Parse(w.URL)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{run: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.URL.RawQuery = r.In.URL.RawQuery
		},
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serveHTTP))
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *front) serveHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r.Clone(r.Context()))
	var found *fault
	for _, one := range f.faults {
		meant := strings.HasPrefix(r.URL.Path, "/projects/") || strings.HasPrefix(r.URL.Path, "/me/") || strings.Contains(one.part, "/assets/")
		if meant && strings.Contains(r.URL.EscapedPath(), one.part) {
			found = one
			break
		}
	}
	f.mu.Unlock()
	if found != nil {
		found.serve(w, r, f.run)
		return
	}
	if f.console != nil && strings.HasPrefix(r.URL.Path, "/console/") {
		f.console.ServeHTTP(w, r)
		return
	}
	f.run.ServeHTTP(w, r)
}

// breaks injects faults from now on, in place of earlier ones.
func (f *front) breaks(faults ...*fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
}

// seen returns the requests so far.
func (f *front) seen() []*http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// refusal answers with an error of the API.
func refusal(status int, code string, headers ...string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", "req-of-the-test")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"error":{"code":` + strconv.Quote(code) + `,"message":"Refused by the test."}}`))
	}
}

// reset ends the connection without an answer.
func reset(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// cutOff sends the first bytes of the answer and then closes the connection.
func cutOff(after int) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, run http.Handler) {
		r.Header.Set("Accept-Encoding", "identity") // so that the cut is in the middle of a record
		run.ServeHTTP(&cutWriter{ResponseWriter: w, left: after}, r)
	}
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutWriter) WriteHeader(status int) {
	c.Header().Del("Content-Length")
	c.ResponseWriter.WriteHeader(status)
}

func (c *cutWriter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b[:min(len(b), c.left)])
	if c.left -= n; err == nil && c.left == 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// hold delays requests until the gate is closed.
func hold(gate <-chan struct{}) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, run http.Handler) {
		select {
		case <-gate:
			run.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// checkRequests fails t if the browser sent a request that is neither in the API's description nor for a console page.
func (f *front) checkRequests(t *testing.T, keys []string) {
	t.Helper()
	for _, r := range f.seen() {
		path := r.URL.EscapedPath()
		i := slices.IndexFunc(routes.Outside(), func(route routes.Route) bool { return route.Matches(path) })
		if i < 0 {
			if path != "/favicon.ico" { // browsers request it by themselves
				t.Errorf("%s %s is not a documented operation", r.Method, path)
			}
			continue
		}
		route := routes.Outside()[i]
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			t.Errorf("%s %s: the console only reads", r.Method, path)
		}
		key := r.Header.Get("X-Api-Key")
		bearer, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if isBearer = isBearer && f.provider != ""; isBearer {
			keys = append(keys, bearer)
		}
		if route.Auth != routes.None && isBearer == slices.Contains(keys, key) {
			t.Errorf("%s %s came with another key than the session's", r.Method, path)
		}
		if r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" && !isBearer {
			t.Errorf("%s %s has a cookie or a credential of the browser", r.Method, path)
		}
		for _, key := range keys {
			if strings.Contains(r.URL.String(), key) || strings.Contains(r.Referer(), key) {
				t.Errorf("%s %s has the key in its address", r.Method, path)
			}
		}
		if route.Service == routes.Console && key != "" {
			t.Errorf("%s %s: a file was asked for with the key", r.Method, path)
		}
	}
}

// answerWith answers with a body that no service would send.
func answerWith(contentType, body string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body))
	}
}
