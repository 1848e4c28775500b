package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/proxy/app"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// templated are the headers of a request whose body has placeholders.
var templated = []string{"X-Use-Body-Templating", "true", "Content-Type", "text/plain"}

// trustingForwarded returns settings of a proxy that trusts the tests' X-Forwarded-For.
func trustingForwarded(further ...string) map[string]string {
	environ := map[string]string{"TRUSTED_PROXIES": "127.0.0.0/8"}
	for i := 0; i < len(further); i += 2 {
		environ[further[i]] = further[i+1]
	}
	return environ
}

// by sends a call from a client address.
func (c call) by(address string) call {
	c.headers = append([]string{"X-Forwarded-For", address}, c.headers...)
	return c
}

// holding is a target that blocks each request until the test releases it.
type holding struct {
	*world
	entered chan struct{} // receives once for each request that reaches the target
	ended   chan struct{}
}

func runHolding(t *testing.T, s setup) *holding {
	h := &holding{entered: make(chan struct{}), ended: make(chan struct{})}
	s.open = true
	s.handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case h.entered <- struct{}{}:
		case <-h.ended:
		}
		<-h.ended
	})
	h.world = run(t, s)
	return h
}

// hold sends a call. It returns "" once the call is blocked in the target, and otherwise the refusal's code and
// message. end ends a blocked call.
func (h *holding) hold(c call) (refusal string, end func()) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	r := h.request(c).WithContext(ctx)
	refused := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		resp, err := h.client.Do(r)
		if err != nil {
			return // ended by the test
		}
		got := read(h.t, resp)
		refused <- fmt.Sprintf("%d %s %s", got.StatusCode, got.code(), got.body)
	}()
	end = func() { cancel(); <-done }
	select {
	case <-h.entered:
		h.t.Cleanup(end)
		return "", end
	case text := <-refused:
		cancel()
		return text, func() {}
	case <-time.After(waitTimeout):
		cancel()
		h.t.Fatal("neither held nor refused")
		return "", nil
	}
}

// release ends all calls.
func (h *holding) release() { close(h.ended) }

// TestTemplatedMemory keeps bodies with placeholders in memory. Each uses 1 MiB, and 1.5 MiB while it grows. Of 16 MiB,
// one address may use 4 MiB, and one endpoint 8 MiB.
func TestTemplatedMemory(t *testing.T) {
	h := runHolding(t, setup{
		environ: trustingForwarded("MAX_TEMPLATED_BODY", strconv.Itoa(1<<20), "PROXY_TEMPLATED_MEMORY", strconv.Itoa(16<<20)),
		manifests: func(w *world) string {
			return endpoint(w, "a", nil) + endpoint(w, "b", m{"origins": []m{{"domain": "example.net"}}}) + endpoint(w, "c", m{"origins": []m{{"domain": "example.org"}}})
		},
	})
	defer h.release()
	hold := func(address, origin string) (string, func()) {
		return h.hold(call{method: "POST", target: h.url("/"), headers: templated, body: strings.Repeat("x", 600<<10)}.by(address).from(origin))
	}
	held := func(n int, address, origin string) (end func()) {
		t.Helper()
		for i := range n {
			var refusal string
			if refusal, end = hold(address, origin); refusal != "" {
				t.Fatalf("body %d of %s: %s", i, address, refusal)
			}
		}
		return end
	}
	refused := func(address, origin, want string) {
		t.Helper()
		if got, _ := hold(address, origin); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	held(3, "192.0.2.1", origin)
	refused("192.0.2.1", origin, "429 rate_limited")
	refused("192.0.2.1", "https://example.net", "429 rate_limited") // an address has one share over all endpoints
	held(3, "192.0.2.2", origin)
	held(1, "192.0.2.3", origin)
	refused("192.0.2.4", origin, "429 rate_limited")
	held(3, "192.0.2.4", "https://example.net")
	held(3, "192.0.2.5", "https://example.net")
	end := held(1, "192.0.2.6", "https://example.net")
	held(1, "192.0.2.7", "https://example.org")
	refused("192.0.2.8", "https://example.org", "503 unavailable")
	end()
	eventually.True(t, "the memory of a request that ended is free again", func() bool {
		refusal, _ := hold("192.0.2.8", "https://example.org")
		return refusal == ""
	})
}

// trickle is a body that pauses before each byte.
type trickle struct {
	bytes int
	pause time.Duration
}

func (b *trickle) Read(p []byte) (int, error) {
	if b.bytes == 0 {
		return 0, io.EOF
	}
	time.Sleep(b.pause) // how slow the client is
	b.bytes--
	p[0] = 'x'
	return 1, nil
}

// TestClientConcurrent checks the limit of concurrent requests of one client address, over all endpoints.
func TestClientConcurrent(t *testing.T) {
	h := runHolding(t, setup{environ: trustingForwarded("PROXY_CLIENT_CONCURRENT", "2"), manifests: func(w *world) string {
		return endpoint(w, "a", nil) + endpoint(w, "b", m{"origins": []m{{"domain": "example.net"}}})
	}})
	defer h.release()
	hold := func(address string) (string, func()) { return h.hold(call{target: h.url("/")}.by(address)) }
	for _, address := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"} {
		if refusal, _ := hold(address); refusal != "" {
			t.Fatalf("%s: %s", address, refusal)
		}
	}
	if got, _ := hold("192.0.2.1"); !strings.HasPrefix(got, "429 rate_limited") {
		t.Errorf("a third request of one address: %s", got)
	}
	if got, _ := h.hold(call{target: h.url("/")}.by("192.0.2.1").from("https://example.net")); !strings.HasPrefix(got, "429 rate_limited") {
		t.Errorf("a third request of one address, to another endpoint: %s", got)
	}
	if got, _ := hold("2001:db8::3"); !strings.HasPrefix(got, "429 rate_limited") { // one /64 is one client
		t.Errorf("a third request of one network: %s", got)
	}
	_, end := hold("192.0.2.2")
	end()
	eventually.True(t, "a slot is free again", func() bool { refusal, _ := hold("192.0.2.2"); return refusal == "" })
}

// TestSlowUploadTakesASlot sends a body with placeholders slowly. The request has a slot from its start.
func TestSlowUploadTakesASlot(t *testing.T) {
	w := run(t, setup{open: true, environ: map[string]string{"PROXY_CLIENT_CONCURRENT": "1"}})
	var feed *io.PipeWriter
	var first chan answer
	begin := func() {
		r := w.request(call{method: "POST", target: w.url("/"), headers: templated})
		r.Body, feed = io.Pipe()
		first = make(chan answer, 1)
		go func(first chan<- answer) {
			defer close(first)
			if resp, err := w.client.Do(r); err == nil {
				first <- read(t, resp)
			}
		}(first)
		_, _ = io.WriteString(feed, "beg")
	}
	begin()
	eventually.True(t, "the upload takes the only slot", func() bool {
		select {
		case refused, answered := <-first: // the other request was faster
			if answered && refused.code() != "rate_limited" {
				t.Fatalf("the upload was answered %d before its end: %s", refused.StatusCode, refused.body)
			}
			_ = feed.Close()
			begin()
		default:
		}
		return w.do(call{target: w.url("/")}).code() == "rate_limited"
	})
	_, _ = io.WriteString(feed, "in")
	_ = feed.Close()
	if s := (<-first).seen(t); s.Body != "begin" {
		t.Errorf("the target saw %+v", s)
	}
}

// TestClientConcurrentIsNotForKeys lets a caller with a key have more requests in flight than one without.
func TestClientConcurrentIsNotForKeys(t *testing.T) {
	keys := authtest.New(t, config.ServerURL{})
	key := keys.Key(project, auth.ProxyUse)
	h := runHolding(t, setup{
		environ: map[string]string{"PROXY_CLIENT_CONCURRENT": "1"}, configure: func(c *app.Config) { c.Auth = keys.Config },
		manifests: func(w *world) string { return endpoint(w, "server", m{"access": "Key", "origins": nil}) },
	})
	defer h.release()
	for range 3 {
		if refusal, _ := h.hold(call{target: h.url("/"), without: []string{"Origin"}, headers: []string{"X-Proxy-Api-Key", key}}); refusal != "" {
			t.Fatal(refusal)
		}
	}
}

// TestMaxInFlight checks the limit of concurrent requests of the process.
func TestMaxInFlight(t *testing.T) {
	h := runHolding(t, setup{environ: trustingForwarded("MAX_IN_FLIGHT", "2")})
	defer h.release()
	for i := range 2 {
		if refusal, _ := h.hold(call{target: h.url("/")}.by("192.0.2." + strconv.Itoa(i))); refusal != "" { // each has its share
			t.Fatal(refusal)
		}
	}
	got := h.do(call{target: h.url("/")}.by("192.0.2.3"))
	if got.StatusCode != http.StatusServiceUnavailable || got.code() != "unavailable" || got.Header.Get("Retry-After") == "" ||
		got.Header.Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("%d %v %s", got.StatusCode, got.Header, got.body)
	}
}

// TestTotalTime sends requests that exceed the total time. A stream in either direction may take any time, unless its
// endpoint sets a total time.
func TestTotalTime(t *testing.T) {
	w := run(t, setup{open: true, configure: func(c *app.Config) { c.TotalTimeout = 2 * time.Second }, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
		for name, value := range map[string]string{"type": "Content-Type", "length": "Content-Length"} {
			if v := r.URL.Query().Get(name); v != "" {
				w.Header().Set(value, v)
			}
		}
		for range 10 {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			if r.URL.Path == "/at-once" {
				continue
			}
			select {
			case <-time.After(300 * time.Millisecond):
			case <-r.Context().Done(): // the proxy cancelled the request
				return
			}
		}
	}), manifests: func(w *world) string {
		return endpoint(w, "web", nil) + endpoint(w, "total", m{"origins": []m{{"domain": "example.net"}}, "timeouts": m{"total": "300ms"}})
	}})
	upload := func(length int64) *http.Request {
		r := w.request(call{method: "POST", target: w.url("/at-once?length=10")})
		r.Body, r.ContentLength = io.NopCloser(&trickle{10, 300 * time.Millisecond}), length
		return r
	}
	for _, tt := range []struct {
		name  string
		in    *http.Request
		whole bool
	}{
		{"an answer with a length", w.request(call{target: w.url("/?length=10")}), false},
		{"an answer without a length", w.request(call{target: w.url("/")}), true},
		{"events, with a length", w.request(call{target: w.url("/?length=10&type=text/event-stream")}), true},
		{"an upload with a length", upload(10), false},
		{"an upload without a length", upload(-1), true},
		{"a stream of an endpoint with a total time", w.request(call{target: w.url("/")}.from("https://example.net")), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			resp, err := w.client.Do(tt.in)
			if err == nil {
				var b []byte
				b, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err == nil && string(b) != "xxxxxxxxxx" {
					err = fmt.Errorf("%d %s", resp.StatusCode, b)
				}
			}
			if (err == nil) != tt.whole {
				t.Errorf("whole: %v (%v)", err == nil, err)
			}
		})
	}
}

// TestHeadersThatGrow inserts a value of 16 KiB into a header 1,500 times. The proxy must refuse the sum before it builds
// the header.
func TestHeadersThatGrow(t *testing.T) {
	w := run(t, setup{open: true, manifests: func(w *world) string {
		return endpoint(w, "large", m{"credentials": []string{"cred_large"}}) +
			credential("cred_large", project, "prod", strings.Repeat("v", 16<<10), nil)
	}})
	before := w.dialled()
	for _, headers := range [][]string{
		{"X-K", strings.Repeat("{{cred_large}}", 1500)},
		{"X-K", "{{cred_large}}{{cred_large}}", "X-L", "{{cred_large}}", "X-L", "{{cred_large}}", "X-M", "{{cred_large}}"},
	} {
		if got := w.do(call{target: w.url("/"), headers: headers}); got.code() != "payload_too_large" || got.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%d %.300s", got.StatusCode, got.body)
		}
	}
	if w.dialled() != before {
		t.Error("something was dialled")
	}
	if s := w.do(call{target: w.url("/"), headers: []string{"X-K", "{{cred_large}}", "X-L", "{{cred_large}}{{cred_large}}{{cred_large}}"}}).seen(t); len(s.Header.Get("X-L")) != 48<<10 {
		t.Errorf("the target saw %d bytes", len(s.Header.Get("X-L")))
	}
}

// TestManyIDs names more credentials in a body than any endpoint has.
func TestManyIDs(t *testing.T) {
	w := run(t, setup{open: true})
	var body strings.Builder
	for i := range 257 {
		_, _ = fmt.Fprintf(&body, "{{cred_%d}}", i)
	}
	if got := w.do(call{method: "POST", target: w.url("/"), headers: templated, body: body.String()}); got.code() != "credential_not_allowed" || !strings.Contains(got.body, "more than 256") {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}
