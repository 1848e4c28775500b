package dial_test

import (
	"crypto/x509"
	"fmt"
	"io"
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

// ask sends a request for url, and checks whether it asks the server to close the connection. If the connection is to be kept,
// ask waits until the transport has put it aside for the next request.
func ask(t *testing.T, tr *http.Transport, url string, kept bool) {
	t.Helper()
	aside := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{PutIdleConn: func(error) { close(aside) }})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != fmt.Sprint("close: ", !kept) {
		t.Errorf("%q %v; want the connection kept: %v", body, err, kept)
	}
	if !kept {
		return
	}
	select {
	case <-aside:
	case <-time.After(time.Minute):
		t.Fatal("the connection is not kept")
	}
}

// TestKeptByEndpoint lets two endpoints use one target. They share no connection, and the connections of an endpoint
// end with it.
func TestKeptByEndpoint(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	var accepted atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, "close: ", r.Close) }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			accepted.Add(1)
		}
	}
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	pool := dial.NewPool(dial.Options{Guard: egress.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil, nil)})
	defer pool.Close()
	one, other := dial.Key{Endpoint: "one"}, dial.Key{Endpoint: "other"}
	for range 2 {
		ask(t, pool.Transport(one, roots), s.URL, true)
		ask(t, pool.Transport(other, roots), s.URL, true)
	}
	if n := accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	pool.Keep(map[dial.Key]bool{one: true})
	ask(t, pool.Transport(one, roots), s.URL, true)
	for range 2 { // requests that began before share no transport, and keep no connection
		ask(t, pool.Transport(other, roots), s.URL, false)
	}
	if n := accepted.Load(); n != 4 {
		t.Errorf("%d connections, want 4", n)
	}
	pool.Keep(map[dial.Key]bool{one: true, other: true})
	for range 2 {
		ask(t, pool.Transport(other, roots), s.URL, true)
	}
	if n := accepted.Load(); n != 5 {
		t.Errorf("%d connections, want 5", n)
	}
}
