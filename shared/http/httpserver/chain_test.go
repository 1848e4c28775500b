package httpserver_test

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

func routes(rt *httpapi.Router) {
	rt.Get("/projects/{projectId}/things", hello)
	rt.Get("/panic", func(http.ResponseWriter, *http.Request) error { panic("the cause is ours") })
	rt.Get("/projects/{projectId}/fails", func(_ http.ResponseWriter, r *http.Request) error {
		httpapi.InfoFrom(r.Context()).KeyID = "key_1"
		return errors.New("host db-7 said no")
	})
	rt.Get("/denied", func(http.ResponseWriter, *http.Request) error { return apierr.NotAuthorized(apierr.RefusedUnknown) })
	rt.Get("/silent", func(http.ResponseWriter, *http.Request) error { return nil })
}

func TestRequestID(t *testing.T) {
	s := serve(t, setup{routes: routes})
	made := regexp.MustCompile(`^[A-Z2-7]{26}$`)
	for _, tc := range []struct {
		name string
		in   []string
		want string // empty: a generated id
	}{
		{name: "none"},
		{name: "sane", in: []string{"abc-DEF_1.2:3/4+5=6@7"}, want: "abc-DEF_1.2:3/4+5=6@7"},
		{name: "longest", in: []string{strings.Repeat("x", 128)}, want: strings.Repeat("x", 128)},
		{name: "too long", in: []string{strings.Repeat("x", 129)}},
		{name: "empty", in: []string{""}},
		{name: "a space", in: []string{"a b"}},
		{name: "markup", in: []string{"<script>"}},
		{name: "quotes", in: []string{`a"b`}},
		{name: "not ASCII", in: []string{"ä"}},
		{name: "two", in: []string{"a", "b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var headers []string
			for _, id := range tc.in {
				headers = append(headers, "X-Request-Id", id)
			}
			for _, path := range []string{"/projects/p/things", "/nowhere", "/panic"} {
				resp, _ := s.get(t, s.public+path, headers...)
				got := resp.Header["X-Request-Id"]
				if len(got) != 1 || (tc.want != "" && got[0] != tc.want) || (tc.want == "" && !made.MatchString(got[0])) {
					t.Errorf("%s answers with the ids %q, want %q", path, got, tc.want)
				}
			}
		})
	}
}

func TestFaultsAreAnsweredAsJSON(t *testing.T) {
	s := serve(t, setup{routes: routes})
	const internal = `"code":"internal","message":"Something went wrong on our side. The request id names this failure in our logs."`
	for _, tc := range []struct {
		name, method, path string
		status             int
		body               string
		allow              string
	}{
		{"unknown path", "GET", "/nowhere", 404, `{"error":{"code":"route_not_found","message":"There is no such path."}}`, ""},
		{"method", "POST", "/denied", 405, `{"error":{"code":"method_not_allowed","message":"Method \"POST\" is not allowed here; allowed: GET, HEAD."}}`, "GET, HEAD"},
		{"a method of its own", "BREW", "/denied", 405, `{"error":{"code":"method_not_allowed","message":"Method \"BREW\" is not allowed here; allowed: GET, HEAD."}}`, "GET, HEAD"},
		{"OPTIONS without CORS", "OPTIONS", "/denied", 405, `{"error":{"code":"method_not_allowed","message":"Method \"OPTIONS\" is not allowed here; allowed: GET, HEAD."}}`, "GET, HEAD"},
		{"panic", "GET", "/panic", 500, `{"error":{` + internal + `},"projectId":null}`, ""},
		{"error", "GET", "/projects/p1/fails", 500, `{"error":{` + internal + `},"projectId":"p1"}`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, accept := range []string{"", "gzip, zstd"} {
				resp, body := s.do(t, tc.method, s.public+tc.path, "Accept-Encoding", accept)
				if resp.StatusCode != tc.status || body != tc.body+"\n" {
					t.Errorf("%d %s, want %d %s", resp.StatusCode, body, tc.status, tc.body)
				}
				if got := resp.Header.Get("Content-Type"); got != "application/json" {
					t.Errorf("Content-Type: %s", got)
				}
				if got := resp.Header.Get("Allow"); got != tc.allow {
					t.Errorf("Allow: %s, want %s", got, tc.allow)
				}
				if got := resp.Header.Get("Content-Encoding"); got != "" {
					t.Errorf("Content-Encoding: %s", got)
				}
			}
		})
	}
	line := s.lines(t, "handler panicked")[0]
	if stack, _ := line["stack"].(string); !strings.Contains(stack, "chain_test.go") || line["error"] != "panic: the cause is ours" {
		t.Errorf("the panic is logged as %v, want its cause and where it was", line)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	plain := serve(t, setup{routes: routes})
	open := serve(t, setup{routes: routes, environ: map[string]string{"CORS_ALLOWED_ORIGINS": "https://app.example"}})
	for _, tc := range []struct {
		name string
		on   *running
		path string
		want map[string]string
	}{
		{"success", plain, "/projects/p/things", map[string]string{
			"Cache-Control": "private, no-cache", "Vary": "X-Api-Key, Authorization, Accept, Accept-Encoding", "X-Content-Type-Options": "nosniff",
		}},
		{"error", plain, "/denied", map[string]string{
			"Cache-Control": "no-store", "Vary": "X-Api-Key, Authorization, Accept, Accept-Encoding", "X-Content-Type-Options": "nosniff",
			"Www-Authenticate": "ApiKey",
		}},
		{"with CORS", open, "/projects/p/things", map[string]string{"Vary": "X-Api-Key, Authorization, Accept, Accept-Encoding, Origin"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, accept := range []string{"", "gzip"} {
				resp, _ := tc.on.get(t, tc.on.public+tc.path, "Accept-Encoding", accept)
				for name, want := range tc.want {
					if got := resp.Header[name]; len(got) != 1 || got[0] != want {
						t.Errorf("%s: %q, want %q once", name, got, want)
					}
				}
			}
		})
	}
}

func TestCORS(t *testing.T) {
	off := serve(t, setup{routes: routes})
	one := serve(t, setup{routes: routes, environ: map[string]string{"CORS_ALLOWED_ORIGINS": "https://app.example"}})
	all := serve(t, setup{routes: routes, environ: map[string]string{"CORS_ALLOWED_ORIGINS": "*"}})
	const exposed = "Link, X-Next-Cursor, X-Last-Seq, Etag, X-Request-Id, Ratelimit, Ratelimit-Policy, Retry-After"
	for _, tc := range []struct {
		name     string
		on       *running
		origin   string
		path     string
		allow    string
		exposing bool
	}{
		{"off", off, "https://app.example", "/projects/p/things", "", false},
		{"allowed", one, "https://app.example", "/projects/p/things", "https://app.example", true},
		{"allowed, error", one, "https://app.example", "/nowhere", "https://app.example", true},
		{"allowed, panic", one, "https://app.example", "/panic", "https://app.example", true},
		{"another", one, "https://app.example.evil", "/projects/p/things", "", false},
		{"null", one, "null", "/projects/p/things", "", false},
		{"all", all, "https://any.example", "/projects/p/things", "*", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp, _ := tc.on.get(t, tc.on.public+tc.path, "Origin", tc.origin)
			if got := resp.Header.Get("Access-Control-Allow-Origin"); got != tc.allow {
				t.Errorf("Access-Control-Allow-Origin: %q, want %q", got, tc.allow)
			}
			if got := resp.Header.Get("Access-Control-Expose-Headers"); (got == exposed) != tc.exposing {
				t.Errorf("Access-Control-Expose-Headers: %q", got)
			}
		})
	}
	t.Run("preflight", func(t *testing.T) {
		resp, body := one.do(t, "OPTIONS", one.public+"/projects/p/things", "Origin", "https://app.example",
			"Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "baggage,cache-control,sentry-trace,x-api-key,x-datadog-trace-id")
		got := map[string]string{}
		for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Max-Age"} {
			got[name] = resp.Header.Get(name)
		}
		want := map[string]string{
			"Access-Control-Allow-Origin": "https://app.example", "Access-Control-Allow-Methods": "GET",
			"Access-Control-Allow-Headers": "baggage,cache-control,sentry-trace,x-api-key,x-datadog-trace-id", "Access-Control-Max-Age": "7200",
		}
		if diff := cmp.Diff(want, got); diff != "" || resp.StatusCode != http.StatusNoContent || body != "" {
			t.Errorf("%d %q (-want +got):\n%s", resp.StatusCode, body, diff)
		}
	})
	t.Run("preflight of a method that is not read", func(t *testing.T) {
		resp, _ := one.do(t, "OPTIONS", one.public+"/projects/p/things", "Origin", "https://app.example", "Access-Control-Request-Method", "DELETE")
		if got := resp.Header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("granted to %q", got)
		}
	})
}

func TestAccessLine(t *testing.T) {
	s := serve(t, setup{routes: routes})
	const canary = "canary-8c1f"
	s.get(t, s.public+"/projects/p1/things?x="+canary, "X-Api-Key", canary, "X-Request-Id", "id-1", "Referer", canary)
	s.get(t, s.public+"/"+canary, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	s.get(t, s.public+"/projects/p1/fails")
	s.get(t, s.public+"/silent")
	s.get(t, s.internal+"/healthz")
	eventually.True(t, "four lines", func() bool { return len(s.lines(t, "request")) == 4 })

	byRoute := map[string]map[string]any{}
	for _, line := range s.lines(t, "request") {
		if line["duration_us"].(float64) < 0 || line["client"] != "127.0.0.1" || line["request_id"] == "" {
			t.Errorf("line %v", line)
		}
		route := line["route"].(string)
		for _, volatile := range []string{"time", "msg", "duration_us", "client", "route", "service"} {
			delete(line, volatile)
		}
		if route != "/projects/{projectId}/things" {
			delete(line, "request_id")
		}
		byRoute[route] = line
	}
	want := map[string]map[string]any{
		"/projects/{projectId}/things": {"level": "INFO", "method": "GET", "status": 200.0, "bytes": 17.0, "project": "p1", "request_id": "id-1"},
		"": {
			"level": "INFO", "method": "GET", "status": 404.0, "bytes": 72.0, "code": "route_not_found",
			"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331",
		},
		"/projects/{projectId}/fails": {"level": "INFO", "method": "GET", "status": 500.0, "bytes": 140.0, "project": "p1", "key_id": "key_1", "code": "internal"},
		"/silent":                     {"level": "INFO", "method": "GET", "status": 200.0, "bytes": 0.0},
	}
	if diff := cmp.Diff(want, byRoute); diff != "" {
		t.Errorf("access lines (-want +got):\n%s", diff)
	}
	failed := s.lines(t, "request failed")
	if len(failed) != 1 || !strings.Contains(failed[0]["error"].(string), "host db-7 said no") || failed[0]["request_id"] == "" {
		t.Errorf("the cause is logged as %v", failed)
	}
	if strings.Contains(s.log.String(), canary) {
		t.Errorf("the log shows what the client sent: %s", s.log)
	}
}
