package dial_test

import (
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lectern-dev/lectern/proxy/egress"
	"github.com/lectern-dev/lectern/proxy/internal/dial"
)

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

// expectKept is expect, and waits until the transport has put the connection aside for the next request.
func expectKept(t *testing.T, tr *http.Transport, r *http.Request, want string) {
	t.Helper()
	kept := make(chan struct{})
	trace := &httptrace.ClientTrace{PutIdleConn: func(error) { close(kept) }}
	expect(t, tr, r.WithContext(httptrace.WithClientTrace(r.Context(), trace)), want)
	select {
	case <-kept:
	case <-time.After(time.Minute):
		t.Fatal("the connection is not kept")
	}
}

// checkLeaks fails a test that leaks goroutines.
func checkLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// TestKeptByEndpoint lets two endpoints use one target. They share no connection, and the connections of an endpoint
// end with it.
func TestKeptByEndpoint(t *testing.T) {
	checkLeaks(t)
	s := newTarget(t, "127.0.0.1:0", false)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	pool := dial.NewPool(dial.Options{Guard: egress.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil, nil)})
	defer pool.Close()
	one, other := dial.Key{Endpoint: "one"}, dial.Key{Endpoint: "other"}
	for range 2 {
		expectKept(t, pool.Transport(one, roots), get(t, s.URL), "HTTP/1.1 GET ")
		expectKept(t, pool.Transport(other, roots), get(t, s.URL), "HTTP/1.1 GET ")
	}
	if n := s.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	pool.Keep(map[dial.Key]bool{one: true})
	expectKept(t, pool.Transport(one, roots), get(t, s.URL), "HTTP/1.1 GET ")
	for range 2 { // requests that began before share no transport, and keep no connection
		expect(t, pool.Transport(other, roots), get(t, s.URL), "HTTP/1.1 GET ")
	}
	if n := s.accepted.Load(); n != 4 {
		t.Errorf("%d connections, want 4", n)
	}
	pool.Keep(map[dial.Key]bool{one: true, other: true})
	for range 2 {
		expectKept(t, pool.Transport(other, roots), get(t, s.URL), "HTTP/1.1 GET ")
	}
	if n := s.accepted.Load(); n != 5 {
		t.Errorf("%d connections, want 5", n)
	}
}
