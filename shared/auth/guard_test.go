package auth_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/redis/redisdb"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// api is a server with three operations. A Guard with a real limiter protects them.
type api struct {
	*bench
	router http.Handler
}

func serve(t *testing.T, keyRate, anonymous limits.Rate) *api {
	t.Helper()
	a := &api{bench: setup(t, auth.VerifierOptions{})}
	limiter := limits.NewLimiter(redisdb.Script(redistest.Client(redistest.Start(t)), limits.TakeScript), limits.LimiterOptions{})
	g := auth.NewGuard(a.Verifier, limiter, keyRate, anonymous)
	say := func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Query().Has("fail") {
			return httpapi.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return errors.New("broken") })(w, r)
		}
		info := httpapi.InfoFrom(r.Context())
		return json.NewEncoder(w).Encode(map[string]any{"key": info.KeyID, "project": info.ProjectID})
	}
	router := httpapi.NewRouter()
	router.Get("/projects/{projectId}/entries", g.Protect(auth.EntriesRead, say))
	router.Get("/projects/{projectId}/proxy", g.Protect(auth.ProxyUse, say))
	router.Get("/projects/{projectId}/experiments", g.Optional(auth.ExperimentsRead, say))
	router.Get("/projects/{projectId}", g.Anonymous(say))
	a.router = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &httpapi.Info{Logger: slog.New(slog.DiscardHandler), ClientAddress: r.Header.Get("Test-Address")}
		if r.URL.Query().Has("full") {
			info.Admit = func(string) error { return apierr.New(apierr.RateLimited, "Full.") }
		}
		router.ServeHTTP(w, r.WithContext(httpapi.WithInfo(r.Context(), info)))
	})
	return a
}

func (a *api) get(path string, keys ...string) *http.Response { return a.from("", path, keys...) }

func (a *api) from(address, path string, keys ...string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for _, k := range keys {
		r.Header.Add("X-Api-Key", k)
	}
	r.Header.Set("Test-Address", address)
	w := httptest.NewRecorder()
	a.router.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, resp *http.Response) map[string]any {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return m
}

func unauthorized(project any) map[string]any {
	return map[string]any{
		"error": map[string]any{
			"code":    "unauthorized",
			"message": "You are not authorized to access this project with the API key provided.",
		},
		"projectId": project,
	}
}

func TestProtect(t *testing.T) {
	a := serve(t, limits.Rate{PerSecond: 1000, Burst: 2000}, limits.Rate{})
	other, _ := auth.Mint()
	a.store.put(auth.Record{ID: "key_2", ProjectID: "q", Scopes: auth.DefaultScopes}, other.Reveal())
	for _, tt := range []struct {
		name   string
		path   string
		keys   []string
		status int
		want   map[string]any
		rated  bool
	}{
		{"good", "/projects/p/entries", []string{a.key}, 200, map[string]any{"key": "key_1", "project": "p"}, true},
		{"missing", "/projects/p/entries", nil, 401, unauthorized("p"), false},
		{"empty", "/projects/p/entries", []string{""}, 401, unauthorized("p"), false},
		{"twice", "/projects/p/entries", []string{a.key, a.key}, 401, unauthorized("p"), false},
		{"malformed", "/projects/p/entries", []string{"nonsense"}, 401, unauthorized("p"), false},
		{"another project's", "/projects/p/entries", []string{other.Reveal()}, 401, unauthorized("p"), false},
		{"in another project", "/projects/q/entries", []string{a.key}, 401, unauthorized("q"), false},
		{"a project with a slash", "/projects/p%2Fx/entries", []string{a.key}, 401, unauthorized("p/x"), false},
		{"a project that is no text", "/projects/%FF/entries", []string{a.key}, 401, unauthorized(nil), false},
		{"a project too long", "/projects/" + strings.Repeat("p", 257) + "/entries", []string{a.key}, 401, unauthorized(strings.Repeat("p", 257)), false},
		{"a scope it lacks", "/projects/p/proxy", []string{a.key}, 403, map[string]any{
			"error":     map[string]any{"code": "insufficient_scope", "message": "The API key does not have the scope proxy:use."},
			"projectId": "p",
		}, true},
		{"a scope it lacks, over the project's share", "/projects/p/proxy?full", []string{a.key}, 403, map[string]any{
			"error":     map[string]any{"code": "insufficient_scope", "message": "The API key does not have the scope proxy:use."},
			"projectId": "p",
		}, true},
		{"over the project's share", "/projects/p/entries?full", []string{a.key}, 429, map[string]any{
			"error": map[string]any{"code": "rate_limited", "message": "Full."}, "projectId": "p",
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp := a.get(tt.path, tt.keys...)
			if resp.StatusCode != tt.status {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.status)
			}
			if diff := cmp.Diff(tt.want, body(t, resp)); diff != "" {
				t.Error(diff)
			}
			if got := resp.Header.Get("WWW-Authenticate"); (got == "ApiKey") != (tt.status == 401) {
				t.Errorf("WWW-Authenticate: %q", got)
			}
			if got := resp.Header.Get("RateLimit"); (got != "") != tt.rated {
				t.Errorf("RateLimit: %q", got)
			}
			if got := resp.Header.Get("RateLimit-Policy"); (got == `"default";q=2000;w=2`) != tt.rated {
				t.Errorf("RateLimit-Policy: %q", got)
			}
		})
	}
	if got := a.get("/projects/p/entries?fail", a.key); got.StatusCode != 500 || got.Header.Get("RateLimit") == "" {
		t.Errorf("an error after the guard: %d, RateLimit %q", got.StatusCode, got.Header.Get("RateLimit"))
	}
	a.store.set(errors.New("out of reach"), nil)
	fresh, _ := auth.Mint()
	resp := a.get("/projects/p/entries", fresh.Reveal())
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("with the store out of reach: %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
}

func TestProtectKeepsTheRate(t *testing.T) {
	a := serve(t, limits.Rate{PerSecond: 1, Burst: 3}, limits.Rate{})
	slow, _ := auth.Mint()
	a.store.put(auth.Record{ID: "key_slow", ProjectID: "p", Scopes: auth.DefaultScopes, Rate: 2}, slow.Reveal())
	for _, tt := range []struct {
		name  string
		key   string
		burst int
	}{{"the default", a.key, 3}, {"its own", slow.Reveal(), 6}} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			n := 0
			var resp *http.Response
			for resp = a.get("/projects/p/entries", tt.key); resp.StatusCode == 200; resp = a.get("/projects/p/entries", tt.key) {
				n++
			}
			if most := tt.burst + int(2*time.Since(start).Seconds()); n < tt.burst || n > most {
				t.Errorf("%d allowed, want %d to %d", n, tt.burst, most)
			}
			if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" || !strings.HasPrefix(resp.Header.Get("RateLimit"), `"default";r=0;t=`) {
				t.Errorf("%d, %v", resp.StatusCode, resp.Header)
			}
			b := body(t, resp)
			if b["projectId"] != "p" || b["error"].(map[string]any)["code"] != "rate_limited" {
				t.Errorf("body %v", b)
			}
			// The scope is checked before the rate.
			if resp := a.get("/projects/p/proxy", tt.key); resp.StatusCode != 403 {
				t.Errorf("without scope and over the rate: %d, want 403", resp.StatusCode)
			}
		})
	}
}

func TestOptionalAndAnonymous(t *testing.T) {
	a := serve(t, limits.Rate{PerSecond: 1000, Burst: 2000}, limits.Rate{PerSecond: 1, Burst: 2})
	for _, tt := range []struct {
		name   string
		path   string
		keys   []string
		status int
		key    string
	}{
		{"no key", "/projects/p/experiments", nil, 200, ""},
		{"a good key", "/projects/p/experiments", []string{a.key}, 200, "key_1"},
		{"a wrong key", "/projects/p/experiments", []string{"nonsense"}, 401, ""},
		{"another project's key", "/projects/q/experiments", []string{a.key}, 401, ""},
		{"an operation without keys", "/projects/p", []string{"nonsense"}, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp := a.get(tt.path, tt.keys...)
			if resp.StatusCode != tt.status {
				t.Fatalf("status %d, want %d", resp.StatusCode, tt.status)
			}
			if b := body(t, resp); tt.status == 200 && b["key"] != tt.key {
				t.Errorf("body %v", b)
			}
		})
	}

	// share checks that two addresses share one rate over both operations.
	share := func(addresses ...string) {
		t.Helper()
		start, n := time.Now(), 0
		for i, path := range []string{"/projects/p/experiments", "/projects/p"} {
			for n < 100 && a.from(addresses[i], path).StatusCode == 200 {
				n++
			}
		}
		if most := 2 + int(time.Since(start).Seconds()); n < 2 || n > most {
			t.Errorf("%d requests of %q, want 2 to %d", n, addresses, most)
		}
	}
	share("192.0.2.1", "::ffff:192.0.2.1")
	if resp := a.from("192.0.2.1", "/projects/p/experiments", a.key); resp.StatusCode != 200 {
		t.Errorf("with a key from that address: %d", resp.StatusCode)
	}
	share("2001:db8::1", "2001:db8::ffff:1")
	if resp := a.from("2001:db8:0:1::1", "/projects/p"); resp.StatusCode != 200 {
		t.Errorf("another IPv6 network: %d", resp.StatusCode)
	}
}
