package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestAnswersWithACredentialArePrivate calls a target whose answers any cache may store.
func TestAnswersWithACredentialArePrivate(t *testing.T) {
	w := run(t, setup{open: true, manifests: func(w *world) string {
		return endpoint(w, "web", nil) + endpoint(w, "unscrubbed", m{"origins": []m{{"domain": "example.net"}}, "scrub": m{"disabled": true}})
	}, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		if sent := r.Header["X-Cache"]; len(sent) > 0 {
			h["Cache-Control"] = sent
		}
		h.Set("Vary", "Accept, origin")
		h.Set("CDN-Cache-Control", "max-age=600")
		h.Set("Surrogate-Control", "max-age=600")
	})})
	for _, tt := range []struct {
		sent []string
		want string
	}{
		{nil, "[private]"},
		{[]string{"public, max-age=60"}, "[private, max-age=60]"},
		{[]string{"max-age=60, S-MaxAge=600", "Public"}, "[private, max-age=60]"},
		{[]string{`private="x, y", no-cache="Set-Cookie, X", must-revalidate`}, `[private, no-cache="Set-Cookie, X", must-revalidate]`},
		{[]string{"no-store"}, "[private, no-store]"},
	} {
		for _, from := range []string{origin, "https://example.net"} {
			c := call{target: w.url("/"), headers: []string{"Authorization", "{{cred_main}}"}}.from(from)
			for _, line := range tt.sent {
				c.headers = append(c.headers, "X-Cache", line)
			}
			got := w.do(c)
			if fmt.Sprint(got.Header["Cache-Control"]) != tt.want {
				t.Errorf("%s, %q: %q, want %s", from, tt.sent, got.Header["Cache-Control"], tt.want)
			}
			if got.Header.Get("CDN-Cache-Control") != "" || got.Header.Get("Surrogate-Control") != "" {
				t.Errorf("%s: the headers for other caches are %v", from, got.Header)
			}
			for _, name := range []string{"accept", "origin", "x-project-id", "x-environment", "x-proxy-api-key"} {
				if !strings.Contains(strings.ToLower(strings.Join(got.Header["Vary"], ", ")), name) {
					t.Errorf("%s: Vary is %q, want %s in it", from, got.Header["Vary"], name)
				}
			}
		}
	}
	got := w.do(call{target: w.url("/"), headers: []string{"X-Cache", "public, max-age=60"}})
	if got.Header.Get("Cache-Control") != "public, max-age=60" || got.Header.Get("CDN-Cache-Control") == "" {
		t.Errorf("without a credential: %v", got.Header)
	}
}
