package dial_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lectern-dev/lectern/proxy/internal/dial"
)

// waitTimeout bounds the wait for an event that should happen at once.
const waitTimeout = 20 * time.Second

// target is a third party on loopback.
type target struct {
	*httptest.Server
	accepted atomic.Int64
}

// counting counts the connections that a listener accepts.
type counting struct {
	net.Listener
	n *atomic.Int64
}

// Accept waits for a connection.
func (c counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

// newTarget starts a target at an address, over TLS, with HTTP/2 if second is set.
func newTarget(t *testing.T, address string, second bool) *target {
	t.Helper()
	s := &target{Server: httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Proto, r.Method, body)
	}))}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Listener.Close()
	s.Listener = counting{l, &s.accepted}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = second
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// to returns a transport that trusts the targets' certificates.
func to(t *testing.T, targets ...*target) *http.Transport {
	t.Helper()
	roots := x509.NewCertPool()
	for _, s := range targets {
		roots.AddCert(s.Certificate())
	}
	pool := dial.NewPool(dial.Options{Guard: dial.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil)})
	t.Cleanup(pool.Close)
	return pool.Transport(dial.Key{Endpoint: "e"}, roots)
}

// inMemory returns a request whose body is in memory.
func inMemory(t *testing.T, address, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
	return r
}

// streamed returns a request whose body streams.
func streamed(t *testing.T, address, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, address, struct{ io.Reader }{strings.NewReader(body)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func get(t *testing.T, address string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func said(tr *http.Transport, r *http.Request) (string, error) {
	res, err := tr.RoundTrip(r)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	return string(body), err
}

func expect(t *testing.T, tr *http.Transport, r *http.Request, want string) {
	t.Helper()
	if got, err := said(tr, r); err != nil || got != want {
		t.Errorf("%q %v, want %q", got, err, want)
	}
}

// checkLeaks fails a test that leaks goroutines.
func checkLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

func TestTargetOfHTTP2(t *testing.T) {
	checkLeaks(t)
	for _, first := range []func(*testing.T, string) *http.Request{
		get,
		func(t *testing.T, u string) *http.Request { return inMemory(t, u, "body") },
		func(t *testing.T, u string) *http.Request { return streamed(t, u, "body") },
	} {
		s := newTarget(t, "127.0.0.1:0", true)
		tr := to(t, s)
		r := first(t, s.URL)
		want := "HTTP/2.0 GET "
		if r.Method == http.MethodPost {
			want = "HTTP/2.0 POST body"
		}
		expect(t, tr, r, want)
		expect(t, tr, get(t, s.URL), "HTTP/2.0 GET ")
		expect(t, tr, inMemory(t, s.URL, "held"), "HTTP/2.0 POST held")
		expect(t, tr, streamed(t, s.URL, "streamed"), "HTTP/2.0 POST streamed")
		if n := s.accepted.Load(); n != 1 {
			t.Errorf("%s first: %d connections, want 1", r.Method, n)
		}
	}
}

func TestTargetOfHTTP1(t *testing.T) {
	checkLeaks(t)
	s := newTarget(t, "127.0.0.1:0", false)
	tr := to(t, s)
	for range 3 {
		expect(t, tr, get(t, s.URL), "HTTP/1.1 GET ")
		expect(t, tr, inMemory(t, s.URL, "held"), "HTTP/1.1 POST held")
		expect(t, tr, streamed(t, s.URL, "streamed"), "HTTP/1.1 POST streamed")
	}
	if n := s.accepted.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestTargetOfAnAddressThatIsForbidden(t *testing.T) {
	checkLeaks(t)
	s := newTarget(t, "127.0.0.1:0", false)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	pool := dial.NewPool(dial.Options{Guard: dial.NewGuard(nil, nil)})
	defer pool.Close()
	tr := pool.Transport(dial.Key{Endpoint: "e"}, roots)
	for _, r := range []*http.Request{get(t, s.URL), inMemory(t, s.URL, "x"), streamed(t, s.URL, "x"), get(t, strings.Replace(s.URL, "https", "http", 1))} {
		if _, err := said(tr, r); err == nil || !strings.Contains(err.Error(), dial.ErrForbidden.Error()) {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
	}
	if n := s.accepted.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

func TestTargetThatNobodyVouchesFor(t *testing.T) {
	checkLeaks(t)
	s := newTarget(t, "127.0.0.1:0", false)
	pool := dial.NewPool(dial.Options{Guard: dial.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil)})
	defer pool.Close()
	tr := pool.Transport(dial.Key{Endpoint: "e"}, x509.NewCertPool())
	for _, r := range []*http.Request{get(t, s.URL), streamed(t, s.URL, "x")} {
		if got, err := said(tr, r); err == nil {
			t.Errorf("%s: %q", r.Method, got)
		}
	}
}

// TestKeptByEndpoint lets two endpoints use one target. They share no connection, and the connections of an endpoint
// end with it.
func TestKeptByEndpoint(t *testing.T) {
	checkLeaks(t)
	s := newTarget(t, "127.0.0.1:0", false)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	pool := dial.NewPool(dial.Options{Guard: dial.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil)})
	defer pool.Close()
	one, other := dial.Key{Endpoint: "one"}, dial.Key{Endpoint: "other"}
	for range 2 {
		expect(t, pool.Transport(one, roots), get(t, s.URL), "HTTP/1.1 GET ")
		expect(t, pool.Transport(other, roots), get(t, s.URL), "HTTP/1.1 GET ")
	}
	if n := s.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	pool.Keep(map[dial.Key]bool{one: true})
	expect(t, pool.Transport(one, roots), get(t, s.URL), "HTTP/1.1 GET ")
	expect(t, pool.Transport(other, roots), get(t, s.URL), "HTTP/1.1 GET ")
	if n := s.accepted.Load(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

// TestConnectingIsGivenUp calls a target that never completes the TLS handshake. The attempt ends when the context
// expires.
func TestConnectingIsGivenUp(t *testing.T) {
	checkLeaks(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	tr := to(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := said(tr, get(t, "https://"+silent.Addr().String()).WithContext(ctx)); err == nil {
		t.Error("an answer")
	}
	if took := time.Since(began); took > waitTimeout {
		t.Errorf("it took %s", took)
	}
}
