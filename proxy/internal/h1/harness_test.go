package h1

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long a test waits for what should happen at once.
const patience = 20 * time.Second

// target is the other end: it does on each connection, and each request, what a test says.
type target struct {
	t        testing.TB
	listener net.Listener
	client   *tls.Config // nil: without TLS
	accepted atomic.Int64
	running  sync.WaitGroup
}

// request is one that came, the nth of its connection, beginning with 0.
type request struct {
	*http.Request
	n    int
	body string
}

// newTarget starts a target. Speak is called for each request, and says whether to go on with the connection. It
// reads the body itself where the request has a header X-Unread.
func newTarget(t testing.TB, secure bool, speak func(c net.Conn, r request) bool) *target {
	t.Helper()
	before := goleak.IgnoreCurrent()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &target{t: t, listener: l}
	var server *tls.Config
	if secure {
		server, s.client = certified(t)
	}
	s.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.accepted.Add(1)
			s.running.Go(func() { s.serve(conn, server, speak) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); s.running.Wait(); goleak.VerifyNone(t, before) })
	return s
}

func (s *target) serve(conn net.Conn, config *tls.Config, speak func(net.Conn, request) bool) {
	if config != nil {
		conn = tls.Server(conn, config)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	in := bufio.NewReader(conn)
	for n := 0; ; n++ {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		var body []byte
		if r.Header.Get("X-Unread") == "" {
			body, err = io.ReadAll(r.Body)
		}
		if err != nil || !speak(conn, request{r, n, string(body)}) {
			return
		}
	}
}

// certified makes a certificate for 127.0.0.1, and who trusts it.
func certified(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "target"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
}

func (s *target) url(path string) string {
	scheme := "http://"
	if s.client != nil {
		scheme = "https://"
	}
	return scheme + s.listener.Addr().String() + path
}

// transport returns a Transport to the target, closed when the test ends.
func (s *target) transport(change func(*Options)) *Transport {
	o := Options{Dial: s.dial, MaxHeaderBytes: 64 << 10, MaxIdle: 8, MaxIdlePerHost: 4, IdleTimeout: time.Minute}
	if change != nil {
		change(&o)
	}
	t := New(o)
	s.t.Cleanup(t.Close)
	return t
}

func (s *target) dial(ctx context.Context, _, address string) (*Conn, error) {
	plain, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return NewConn(ctx, plain, s.client)
}

// ask makes a request, with a held body where there is one.
func (s *target) ask(ctx context.Context, method, body string, headers ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.url("/"), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.ContentLength = int64(len(body))
		r.GetBody = func() (io.ReadCloser, error) { return Held{io.NopCloser(strings.NewReader(body))}, nil }
		r.Body, _ = r.GetBody()
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// get asks with GET and reads the answer.
func (s *target) get(t *Transport) (*http.Response, string, error) {
	return whole(t.RoundTrip(s.ask(context.Background(), http.MethodGet, "")))
}

// whole reads an answer to its end.
func whole(res *http.Response, err error) (*http.Response, string, error) {
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(res.Body)
	return res, string(body), errors.Join(err, res.Body.Close())
}

// says writes pieces, each by a write of its own.
func says(c net.Conn, pieces ...string) {
	for _, p := range pieces {
		_, _ = io.WriteString(c, p)
	}
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// until waits for a condition.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// idleNow returns the connections that are kept.
func (t *Transport) idleNow() []*conn {
	t.idle.mu.Lock()
	defer t.idle.mu.Unlock()
	var kept []*conn
	for e := t.idle.ages.Front(); e != nil; e = e.Next() {
		kept = append(kept, e.Value.(*conn))
	}
	return kept
}

// each runs a test with TLS and without.
func each(t *testing.T, f func(t *testing.T, secure bool)) {
	t.Run("plain", func(t *testing.T) { f(t, false) })
	t.Run("TLS", func(t *testing.T) { f(t, true) })
}
