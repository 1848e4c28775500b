package auth_test

import (
	"bytes"
	"context"
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

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/ratelimit"
	"github.com/lectern-dev/lectern/shared/redistest"
)

// api is a server of three operations behind a Guard with a real limiter.
type api struct {
	*bench
	router http.Handler
}

func serve(t *testing.T, keyRate, anonymous ratelimit.Rate) *api {
	t.Helper()
	a := &api{bench: setup(t, auth.VerifierOptions{})}
	limiter := ratelimit.New(redistest.Start(t).Client(), ratelimit.Options{})
	g := auth.NewGuard(a.Verifier, limiter, keyRate, anonymous)
	say := func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Query().Has("fail") {
			return httpapi.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return errors.New("broken") })(w, r)
		}
		p, ok := auth.PrincipalFrom(r.Context())
		info := httpapi.InfoFrom(r.Context())
		return json.NewEncoder(w).Encode(map[string]any{"key": p.KeyID, "known": ok, "info": info.KeyID, "project": info.ProjectID})
	}
	router := httpapi.NewRouter()
	router.Get("/projects/{projectId}/entries", g.Protect(auth.EntriesRead, say))
	router.Get("/projects/{projectId}/proxy", g.Protect(auth.ProxyUse, say))
	router.Get("/projects/{projectId}/experiments", g.Optional(auth.ExperimentsRead, say))
	router.Get("/projects/{projectId}", g.Anonymous(say))
	a.router = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &httpapi.Info{Logger: slog.New(slog.DiscardHandler), ClientAddress: r.Header.Get("Test-Address")}
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
	a := serve(t, ratelimit.Rate{PerSecond: 1000, Burst: 2000}, ratelimit.Rate{})
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
		{"good", "/projects/p/entries", []string{a.key}, 200, map[string]any{"key": "key_1", "known": true, "info": "key_1", "project": "p"}, true},
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
		t.Errorf("an error behind the guard: %d, RateLimit %q", got.StatusCode, got.Header.Get("RateLimit"))
	}
	a.store.set(errors.New("out of reach"), nil)
	fresh, _ := auth.Mint()
	resp := a.get("/projects/p/entries", fresh.Reveal())
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("with the store out of reach: %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
}

func TestProtectKeepsTheRate(t *testing.T) {
	a := serve(t, ratelimit.Rate{PerSecond: 1, Burst: 3}, ratelimit.Rate{})
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
			// The scope is judged before the rate.
			if resp := a.get("/projects/p/proxy", tt.key); resp.StatusCode != 403 {
				t.Errorf("without scope and over the rate: %d, want 403", resp.StatusCode)
			}
		})
	}
}

func TestOptionalAndAnonymous(t *testing.T) {
	a := serve(t, ratelimit.Rate{PerSecond: 1000, Burst: 2000}, ratelimit.Rate{PerSecond: 1, Burst: 2})
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
			if b := body(t, resp); tt.status == 200 && (b["key"] != tt.key || b["known"] != (tt.key != "")) {
				t.Errorf("body %v", b)
			}
		})
	}

	allowed := func(address string) int {
		n := 0
		for a.from(address, "/projects/p/experiments").StatusCode == 200 && n < 100 {
			n++
		}
		return n
	}
	start := time.Now()
	if n, most := allowed("192.0.2.1"), 2+int(time.Since(start).Seconds()); n < 2 || n > most {
		t.Errorf("%d requests of one address, want 2 to %d", n, most)
	}
	if resp := a.from("::ffff:192.0.2.1", "/projects/p"); resp.StatusCode != 429 {
		t.Errorf("the same address in IPv6's clothes: %d", resp.StatusCode)
	}
	if resp := a.from("192.0.2.1", "/projects/p/experiments", a.key); resp.StatusCode != 200 {
		t.Errorf("with a key from that address: %d", resp.StatusCode)
	}
	allowed("2001:db8::1")
	if resp := a.from("2001:db8::ffff:1", "/projects/p"); resp.StatusCode != 429 {
		t.Errorf("another address of the same IPv6 network: %d", resp.StatusCode)
	}
	if resp := a.from("2001:db8:0:1::1", "/projects/p"); resp.StatusCode != 200 {
		t.Errorf("another IPv6 network: %d", resp.StatusCode)
	}
}

func TestSharedKeys(t *testing.T) {
	for _, tt := range []struct {
		name   string
		keys   []config.Secret
		header []string
		want   bool
	}{
		{"the only one", []config.Secret{"one"}, []string{"one"}, true},
		{"the first", []config.Secret{"one", "two"}, []string{"one"}, true},
		{"the last", []config.Secret{"one", "two"}, []string{"two"}, true},
		{"the same twice", []config.Secret{"one", "one"}, []string{"one"}, true},
		{"wrong", []config.Secret{"one"}, []string{"two"}, false},
		{"a prefix", []config.Secret{"one"}, []string{"on"}, false},
		{"missing", []config.Secret{"one"}, nil, false},
		{"sent twice", []config.Secret{"one"}, []string{"one", "one"}, false},
		{"none configured", nil, []string{"one"}, false},
		{"an empty one configured", []config.Secret{""}, []string{""}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reached := false
			h := auth.NewSharedKeys(tt.keys).Protect(func(http.ResponseWriter, *http.Request) error {
				reached = true
				return nil
			})
			sent := &unread{}
			r := httptest.NewRequest(http.MethodPost, "/api/projects/region", sent)
			for _, v := range tt.header {
				r.Header.Add("x-api-key", v)
			}
			info := &httpapi.Info{Logger: slog.New(slog.DiscardHandler), ProjectID: "p"}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(httpapi.WithInfo(r.Context(), info)))
			if reached != tt.want {
				t.Fatalf("let through: %v, want %v", reached, tt.want)
			}
			if sent.read {
				t.Error("the body was read")
			}
			if !tt.want {
				if w.Code != 401 {
					t.Errorf("status %d", w.Code)
				}
				if diff := cmp.Diff(unauthorized(nil), body(t, w.Result())); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// unread is a body that knows whether somebody read it.
type unread struct{ read bool }

func (u *unread) Read([]byte) (int, error) {
	u.read = true
	return 0, io.EOF
}

// foreignStore is a ForeignSource in memory.
type foreignStore struct {
	hashes []auth.Hash
	err    error
	calls  chan time.Time // what was asked for, one each
}

func (f *foreignStore) ForeignHashes(_ context.Context, since time.Time, add func(auth.Hash)) (time.Time, error) {
	defer func() { f.calls <- since }()
	if f.err != nil {
		return time.Time{}, f.err
	}
	for _, h := range f.hashes {
		add(h)
	}
	return time.Now(), nil
}

func TestForeignKeys(t *testing.T) {
	source := &foreignStore{hashes: []auth.Hash{auth.HashKey("my own key")}, err: errors.New("out of reach"), calls: make(chan time.Time)}
	var logs bytes.Buffer
	foreign := auth.NewForeignKeys(source, slog.New(slog.NewTextHandler(&logs, nil)), time.Now)
	b := setup(t, auth.VerifierOptions{Foreign: foreign})
	b.store.put(auth.Record{ID: "key_f", ProjectID: "p", Foreign: true}, "my own key")
	b.store.put(auth.Record{ID: "key_g", ProjectID: "p", Foreign: true}, "brought later")
	verify := func(key string) error {
		_, err := b.Verify(t.Context(), "p", key)
		return err
	}

	if err := verify("my own key"); code(err) != "unavailable" {
		t.Errorf("before anything is known: %v, want unavailable", err)
	}
	if err := b.verify(t); err != nil {
		t.Errorf("a key of our own form: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); foreign.Run(ctx) }()
	defer func() { cancel(); <-done }()
	<-source.calls
	if err := verify("my own key"); code(err) != "unavailable" {
		t.Errorf("after a failure: %v, want unavailable", err)
	}
	source.err = nil // Run waits for the refresh
	foreign.Refresh()
	if since := <-source.calls; !since.IsZero() {
		t.Errorf("after a failure, keys since %v are read, want all", since)
	}
	eventually(t, "the keys are known", func() bool { return verify("my own key") == nil })

	// A flood of made-up keys reaches no store.
	before := b.store.asked.Load()
	for i := range 20_000 {
		if err := verify("made up " + string(rune('a'+i%26)) + strings.Repeat("x", i%100)); !errors.Is(err, auth.ErrUnknown) {
			t.Fatal(err)
		}
	}
	if n := b.store.asked.Load() - before; n != 0 {
		t.Errorf("%d look-ups of made-up keys", n)
	}

	source.hashes = []auth.Hash{auth.HashKey("brought later")}
	foreign.Refresh()
	if since := <-source.calls; since.IsZero() || time.Since(since) < 20*time.Second {
		t.Errorf("keys since %v are read, want those since some 30 s ago", since)
	}
	eventually(t, "the new key is known", func() bool { return verify("brought later") == nil })
	if err := verify("my own key"); err != nil {
		t.Errorf("a key that was known before: %v", err)
	}
}

func TestConfigValidate(t *testing.T) {
	good := map[string]string{"AUTH_DATABASE_URL": "postgres://r@h/auth"}
	for _, tt := range []struct {
		name string
		in   map[string]string
		want []string // variables at fault
	}{
		{"defaults", nil, nil},
		{"with Redis", map[string]string{"REDIS_URL": "redis://h", "AUTH_CACHE_SECRETS": "0123456789abcdef,0123456789abcdeg"}, nil},
		{"Redis without secrets", map[string]string{"REDIS_URL": "redis://h"}, []string{"AUTH_CACHE_SECRETS"}},
		{"everything", map[string]string{
			"REDIS_URL": "http://h", "AUTH_CACHE_SECRETS": "short", "AUTH_CACHE_TTL": "1ms",
			"RATE_LIMIT": "-1", "RATE_BURST": "-1", "ANON_RATE_LIMIT": "2000000000",
		}, []string{"ANON_RATE_LIMIT", "AUTH_CACHE_SECRETS", "AUTH_CACHE_TTL", "RATE_BURST", "RATE_LIMIT", "REDIS_URL"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			environ := map[string]string{}
			for _, m := range []map[string]string{good, tt.in} {
				for k, v := range m {
					environ[k] = v
				}
			}
			var cfg auth.Config
			err := config.Load(&cfg, environ)
			got := map[string]bool{}
			if faults, ok := errors.AsType[*config.Faults](err); ok {
				for _, f := range faults.All {
					if fault, ok := errors.AsType[*config.Fault](f); ok {
						got[fault.Variable] = true
					}
				}
			}
			want := map[string]bool{}
			for _, v := range tt.want {
				want[v] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%v: %s", err, diff)
			}
			if len(tt.want) == 0 {
				if diff := cmp.Diff(ratelimit.Rate{PerSecond: 1000, Burst: 2000}, cfg.KeyRate()); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(ratelimit.Rate{PerSecond: 200, Burst: 400}, cfg.AnonymousRate()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
