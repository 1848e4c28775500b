package app_test

import (
	"io"
	"net/http"
	"testing"
)

// TestCutSecretsAreDropped calls a target that ends its answer within a value.
func TestCutSecretsAreDropped(t *testing.T) {
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("X-K")
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("X-Echo", "key "+key[:len(key)-1])
		_, _ = io.WriteString(w, "key "+key[:len(key)-1])
		w.Header().Set("X-Sum", key[:12])
	})})
	got := w.do(call{target: w.url("/"), headers: []string{"X-K", "{{cred_main}}"}})
	if got.body != "key [redacted]" || got.Header.Get("X-Echo") != "key [redacted]" || got.Trailer.Get("X-Sum") != "[redacted]" {
		t.Errorf("body %q, header %q, trailer %q", got.body, got.Header.Get("X-Echo"), got.Trailer.Get("X-Sum"))
	}
}
