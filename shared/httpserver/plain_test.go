package httpserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/httpapi"
)

// TestPlainAnswersAreLeftAlone checks that a plain listener adds only the configured headers to an answer.
func TestPlainAnswersAreLeftAlone(t *testing.T) {
	body := strings.Repeat("text that shrinks ", 1000)
	r := serve(t, setup{
		environ: map[string]string{"CORS_ALLOWED_ORIGINS": "*"},
		plain:   http.Header{"X-Marked": {"by default"}},
		routes: func(public *httpapi.Router) {
			public.Any("/any", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{"text/plain"}
				w.Header().Add("X-Marked", "by the handler")
				_, _ = w.Write([]byte(body))
			}))
			public.Any("/unmarked", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Del("X-Marked")
			}))
		},
	})
	for range 2 { // the second request shows that the first one had no side effects
		resp, got := r.do(t, "PROPFIND", r.public+"/any", "Accept-Encoding", "gzip, zstd", "Origin", "https://example.com")
		if got != body {
			t.Errorf("the body was changed")
		}
		for name, values := range resp.Header {
			switch name {
			case "Content-Type", "Content-Length", "Date", "X-Request-Id":
			case "X-Marked":
				if strings.Join(values, "|") != "by default|by the handler" {
					t.Errorf("X-Marked: %q", values)
				}
			default:
				t.Errorf("header %s: %q was added", name, values)
			}
		}
		if resp, _ := r.get(t, r.public+"/unmarked"); resp.Header.Get("X-Marked") != "" {
			t.Error("a handler could not remove a default header")
		}
		if resp, _ := r.get(t, r.public+"/none"); resp.StatusCode != http.StatusNotFound || resp.Header.Get("X-Marked") != "by default" {
			t.Errorf("no such path: %d, X-Marked %q", resp.StatusCode, resp.Header.Get("X-Marked"))
		}
	}
}

// TestHeadersAreInEveryAnswer checks that a service's own headers replace the server's, even in answers without a
// handler.
func TestHeadersAreInEveryAnswer(t *testing.T) {
	r := serve(t, setup{
		headers: http.Header{"Content-Security-Policy": {"default-src 'self'"}, "X-Marked": {"always"}},
		routes: func(public *httpapi.Router) {
			public.Get("/panics", func(http.ResponseWriter, *http.Request) error { panic("a fault") })
			public.Get("/own", func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("X-Marked", "by the handler")
				return nil
			})
		},
	})
	for path, marked := range map[string]string{"/panics": "always", "/none": "always", "/own": "by the handler"} {
		resp, _ := r.get(t, r.public+path)
		if got := resp.Header.Get("X-Marked"); got != marked {
			t.Errorf("%s: X-Marked %q, want %q", path, got, marked)
		}
		if got := resp.Header.Values("Content-Security-Policy"); len(got) != 1 || got[0] != "default-src 'self'" {
			t.Errorf("%s: Content-Security-Policy %q", path, got)
		}
	}
	if resp, _ := r.get(t, r.internal+"/healthz"); resp.Header.Get("X-Marked") != "" {
		t.Error("the internal address has the header, too")
	}
}
