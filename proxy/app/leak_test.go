package app_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestSecondEncodingsAreScrubbed lets a target encode cred_other twice, in its body and in a header.
func TestSecondEncodingsAreScrubbed(t *testing.T) {
	inJSON := func(s string) string {
		quoted, _ := json.Marshal(s)
		return strings.Trim(string(quoted), `"`)
	}
	echoes := map[string]string{
		"JSON in JSON":               inJSON(inJSON(other)),
		"percent, twice":             url.QueryEscape(url.QueryEscape(other)),
		"HTML":                       strings.ReplaceAll(html.EscapeString(other), "/", "&#x2F;"),
		"HTML, decimal":              strings.NewReplacer("/", "&#47;", "=", "&#061;").Replace(other),
		"HTML, named":                strings.NewReplacer("/", "&sol;", "=", "&equals;", "&", "&amp;").Replace(other),
		`\/ doubled`:                 strings.ReplaceAll(other, "/", `\\/`),
		`\x2f`:                       strings.ReplaceAll(other, "/", `\x2f`),
		"hex":                        hex.EncodeToString([]byte(other)),
		"base64 of percent-encoding": base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(other))),
	}
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/"))
		w.Header().Set("X-Echo", "<"+echoes[name]+">")
		_, _ = io.WriteString(w, "<"+echoes[name]+">")
	})})
	for name, in := range echoes {
		got := w.do(call{target: w.url("/" + url.PathEscape(name)), headers: []string{"X-K", "{{cred_other}}"}})
		for place, text := range map[string]string{"body": got.body, "header": got.Header.Get("X-Echo")} {
			// The base64 characters at both ends also encode neighbouring bytes.
			if !strings.HasPrefix(text, "<[redacted]") || len(text) > len("<[redacted]==>") {
				t.Errorf("%s, %s: %s came back as %s", name, place, in, text)
			}
		}
	}
}

// TestForeignCharactersAreScrubbed calls a target that reads headers as ISO 8859-1 and answers in UTF-8.
func TestForeignCharactersAreScrubbed(t *testing.T) {
	const value = "schlüssel-größe-€"
	w := run(t, setup{
		open: true,
		manifests: func(w *world) string {
			return endpoint(w, "web", m{"credentials": []string{"cred_foreign_letters"}}) + credential("cred_foreign_letters", project, "prod", value, nil)
		},
		handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, c := range []byte(r.Header.Get("X-K")) {
				_, _ = io.WriteString(w, string(rune(c)))
			}
		}),
	})
	if got := w.do(call{target: w.url("/"), headers: []string{"X-K", "<{{cred_foreign_letters}}>"}}); got.body != "<[redacted]>" {
		t.Errorf("came back as %q", got.body)
	}
}

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

// TestStreamsTellNothingOfASecret calls a target that sends a part of a value and waits. The number of forwarded bytes
// must depend only on the length of the answer. The proxy forwards an event completely, and holds back the end of other
// text.
func TestStreamsTellNothingOfASecret(t *testing.T) {
	for _, media := range []string{"text/event-stream; charset=utf-8", "application/x-ndjson", "text/plain"} {
		guess := canary[:10]
		more := make(chan struct{})
		w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", media)
			_, _ = io.WriteString(w, strings.Repeat(".", 1000)+guess+"\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-more:
			case <-r.Context().Done():
			}
		})})
		resp, err := w.client.Do(w.request(call{target: w.url("/"), headers: []string{"X-K", "{{cred_main}}"}}))
		if err != nil {
			t.Fatal(err)
		}
		want := 1000 + len(guess) + 1
		if media == "text/plain" {
			want = 100 // at least this number of bytes
		}
		if _, err := io.ReadFull(resp.Body, make([]byte, want)); err != nil {
			t.Errorf("%s: %v", media, err)
		}
		close(more)
		rest, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || media == "text/plain" && !strings.HasSuffix(string(rest), guess+"\n") {
			t.Errorf("%s: %q %v", media, rest, err)
		}
	}
}
