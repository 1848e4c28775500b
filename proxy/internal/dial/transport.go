package dial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/proxy/internal/h1"
)

// What is kept between requests, by either of a transport's ways.
const (
	maxIdle        = 1024
	maxIdlePerHost = 64
)

// Transport sends an endpoint's requests. Most go by HTTP/1.1 in the goroutine that asks (see package h1); those
// with a body that streams, and those to targets that speak HTTP/2, by net/http's transport, which has
// connections of its own. Which protocol a target speaks is settled by each handshake (ALPN), and the first one
// serves the way that it leads to.
type Transport struct {
	dialer   *dialer
	direct   *h1.Transport
	standard *http.Transport
	second   authorities // that chose HTTP/2 when they were asked last
}

func newTransport(o Options, roots *x509.CertPool) *Transport {
	t := &Transport{dialer: newDialer(o, roots)}
	t.direct = h1.New(h1.Options{
		Dial: t.connectDirect, MaxHeaderBytes: o.MaxHeaderBytes,
		MaxIdle: maxIdle, MaxIdlePerHost: maxIdlePerHost, IdleTimeout: o.IdleTimeout,
	})
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	t.standard = &http.Transport{
		Proxy:                  nil, // the environment has no say in where credentials go
		DialContext:            t.dialer.DialContext,
		DialTLSContext:         t.connectStandard,
		Protocols:              protocols,
		DisableCompression:     true, // encodings are between caller and target
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        o.IdleTimeout,
		MaxResponseHeaderBytes: o.MaxHeaderBytes,
		ExpectContinueTimeout:  time.Second,
		WriteBufferSize:        32 << 10,
		ReadBufferSize:         32 << 10,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	return t
}

func (t *Transport) close() {
	t.direct.Close()
	t.standard.CloseIdleConnections()
}

// RoundTrip does what http.RoundTripper says.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !h1.Takes(r) || t.second.has(r.URL) {
		return t.standard.RoundTrip(r)
	}
	res, err := t.direct.RoundTrip(r)
	if err == nil {
		return res, nil
	}
	if chosen, ok := errors.AsType[*secondChosen](err); ok {
		return t.handOver(r, chosen)
	}
	return nil, err
}

// secondChosen is that a target chose HTTP/2 on a connection.
type secondChosen struct {
	conn    *tls.Conn
	address string
}

// Error is the reason.
func (*secondChosen) Error() string { return "the target speaks HTTP/2" }

// connectDirect is package h1's way to connect.
func (t *Transport) connectDirect(ctx context.Context, scheme, address string) (*h1.Conn, error) {
	c, err := t.dialer.connect(ctx, scheme, address)
	if err != nil {
		return nil, err
	}
	if secure := c.TLS(); secure != nil && t.note(address, secure) {
		return nil, &secondChosen{secure, address}
	}
	return c, nil
}

// connectStandard is the standard library's way to connect over TLS. It takes the connection that comes with the
// request, if one does.
func (t *Transport) connectStandard(ctx context.Context, _, address string) (net.Conn, error) {
	if h, ok := ctx.Value(handoverKey{}).(*handover); ok {
		if chosen := h.Swap(nil); chosen != nil {
			if chosen.address == address {
				return chosen.conn, nil
			}
			_ = chosen.conn.Close() // can not be: one request has one address
		}
	}
	c, err := t.dialer.connect(ctx, "https", address)
	if err != nil {
		return nil, err
	}
	t.note(address, c.TLS())
	return c.TLS(), nil
}

// note remembers what a target chose, and tells whether that is HTTP/2.
func (t *Transport) note(address string, c *tls.Conn) bool {
	second := c.ConnectionState().NegotiatedProtocol == "h2"
	t.second.set(address, second)
	return second
}

type handoverKey struct{}

// handover holds a connection for whoever comes first.
type handover struct{ atomic.Pointer[secondChosen] }

// handOver sends a request for which a connection was made that turned out to be of HTTP/2.
func (t *Transport) handOver(r *http.Request, chosen *secondChosen) (*http.Response, error) {
	h := &handover{}
	h.Store(chosen)
	defer func() {
		if left := h.Swap(nil); left != nil {
			_ = left.conn.Close() // there was another connection already
		}
	}()
	again := r.WithContext(context.WithValue(r.Context(), handoverKey{}, h))
	if r.Body != nil && r.Body != http.NoBody {
		body, err := r.GetBody() // the first one is closed
		if err != nil {
			return nil, err
		}
		again.Body = body
	}
	return t.standard.RoundTrip(again)
}

// authorities is a set of host:port.
type authorities struct {
	mu    sync.RWMutex
	known map[string]struct{}
}

// maxAuthorities bounds what is remembered: destinations may be patterns, and names without end match.
const maxAuthorities = 4096

func (a *authorities) has(u *url.URL) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if len(a.known) == 0 || u == nil || u.Scheme != "https" {
		return false
	}
	_, ok := a.known[authority(u)]
	return ok
}

// set puts an address in, or takes it out.
func (a *authorities) set(address string, in bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !in {
		delete(a.known, address)
		return
	}
	if a.known == nil || len(a.known) >= maxAuthorities {
		a.known = map[string]struct{}{} // each is found out again
	}
	a.known[address] = struct{}{}
}

// authority returns the address of a URL of https.
func authority(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
