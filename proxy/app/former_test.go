package app_test

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// keeper is a target that answers with all values that it ever received, at once or, at /stream, when on is closed.
type keeper struct {
	mu   sync.Mutex
	kept []string
	on   chan struct{}
}

func (k *keeper) values() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.kept)
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if value := r.Header.Get("X-K"); value != "" && !slices.Contains(k.values(), value) {
		k.mu.Lock()
		k.kept = append(k.kept, value)
		k.mu.Unlock()
	}
	w.Header().Set("Trailer", "X-Late")
	if r.URL.Path == "/stream" {
		_, _ = io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		<-k.on
	}
	all := strings.Join(k.values(), " ")
	w.Header().Set("X-Echo", all) // too late for a header of the stream
	_, _ = io.WriteString(w, all)
	w.Header().Set("X-Late", all)
}

// TestFormerValuesStayHidden changes a credential that a target keeps. The answers of the endpoint must show no value that
// the proxy has sent, also in a stream that began before the change.
func TestFormerValuesStayHidden(t *testing.T) {
	const renewed, again = "sk_live_the_second_value", "sk_live_the_third_value"
	rotate := func(w *world, value string) {
		w.write("credentials.yaml", credential("cred_main", project, "prod", value, nil)+credential("cred_other", project, "prod", other, nil))
	}
	uses := func(w *world, ids any) { w.write("policy.yaml", endpoint(w, "web", m{"credentials": ids})) }
	// sends reports whether a request with the credential reaches the target.
	sends := func(w *world) bool {
		return w.do(call{target: w.url("/"), headers: []string{"X-K", "{{cred_main}}"}}).code() == ""
	}
	for _, tt := range []struct {
		name   string
		change func(w *world, k *keeper)
	}{
		{"rotated", func(w *world, k *keeper) {
			for _, value := range []string{renewed, again} {
				rotate(w, value)
				eventually.True(t, "the target has "+value, func() bool { return sends(w) && slices.Contains(k.values(), value) })
			}
		}},
		{"taken off", func(w *world, k *keeper) {
			uses(w, []string{"cred_other"})
			eventually.True(t, "the refusal", func() bool { return !sends(w) })
		}},
		{"the last one taken off", func(w *world, k *keeper) {
			uses(w, nil)
			eventually.True(t, "the refusal", func() bool { return !sends(w) })
		}},
		{"another in its place", func(w *world, k *keeper) {
			rotate(w, renewed)
			eventually.True(t, "the target has the second value", func() bool { return sends(w) && slices.Contains(k.values(), renewed) })
			uses(w, []string{"cred_other"})
			eventually.True(t, "the refusal", func() bool { return !sends(w) })
		}},
		{"the endpoint removed and made again", func(w *world, k *keeper) {
			w.write("policy.yaml", endpoint(w, "elsewhere", m{"origins": []m{{"domain": "example.net"}}}))
			eventually.True(t, "the removal", func() bool { return !sends(w) })
			uses(w, nil)
			eventually.True(t, "the endpoint", func() bool { return w.do(call{target: w.url("/")}).code() == "" })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := &keeper{on: make(chan struct{})}
			w := run(t, setup{open: true, handler: k, manifests: func(w *world) string {
				return endpoint(w, "web", m{"credentials": []string{"cred_main"}})
			}})
			check := func(place string, texts ...string) {
				t.Helper()
				for _, text := range texts {
					if !strings.Contains(text, "[redacted]") || slices.ContainsFunc(k.values(), func(value string) bool { return strings.Contains(text, value) }) {
						t.Errorf("%s: %q", place, text)
					}
				}
			}
			stream, err := w.client.Do(w.request(call{target: w.url("/stream"), headers: []string{"X-K", "{{cred_main}}"}}))
			if err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(io.LimitReader(stream.Body, 6)).ReadString('\n'); line != "begun\n" {
				t.Fatalf("%q %v", line, err)
			}
			tt.change(w, k)
			resp, err := w.client.Do(w.request(call{target: w.url("/")}))
			if err != nil {
				t.Fatal(err)
			}
			check("an answer", read(t, resp).body, resp.Header.Get("X-Echo"), resp.Trailer.Get("X-Late"))
			close(k.on)
			check("the stream", read(t, stream).body, stream.Trailer.Get("X-Late"))
		})
	}
}
