package app_test

import (
	"io"
	"net/http"
	"sync"
	"testing"
)

// notes returns a target that stores a value and returns it to the next caller.
func notes() http.Handler {
	var mu sync.Mutex
	var kept string
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPost {
			b, _ := io.ReadAll(r.Body)
			kept = string(b) + r.Header.Get("X-Note")
			return
		}
		w.Header().Set("X-Note", kept)
		w.Header().Set("X-Asked", r.Header.Get("Range")+", "+r.Header.Get("Accept-Encoding"))
		_, _ = io.WriteString(w, "note: "+kept+".")
	})
}

// TestStoredSecretsAreScrubbed writes one credential to the target, and reads it with another credential and with none.
func TestStoredSecretsAreScrubbed(t *testing.T) {
	w := run(t, setup{open: true, handler: notes()})
	for _, write := range []call{
		{method: "POST", target: w.url("/"), body: "{{cred_other}}", headers: []string{"X-Use-Body-Templating", "true", "Content-Type", "text/plain"}},
		{method: "POST", target: w.url("/"), headers: []string{"X-Note", "{{cred_other}}"}},
		{method: "POST", target: w.url("/narrow/"), headers: []string{"X-Note", "{{cred_narrow}}"}}, // not allowed for the path of the later read
	} {
		if got := w.do(write); got.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", got.StatusCode, got.body)
		}
		for _, with := range []string{"Bearer {{cred_main}}", ""} {
			// A range could begin within the value, and the proxy cannot decode brotli.
			got := w.do(call{target: w.url("/"), headers: []string{"Authorization", with, "Range", "bytes=10-", "Accept-Encoding", "br, gzip;q=0.5"}})
			if got.body != "note: [redacted]." || got.Header.Get("X-Note") != "[redacted]" {
				t.Errorf("read with %q: %q, %q", with, got.body, got.Header.Get("X-Note"))
			}
			if asked := got.Header.Get("X-Asked"); asked != ", gzip;q=0.5" {
				t.Errorf("read with %q: the target was asked for %q", with, asked)
			}
		}
	}
}
