// Package dial keeps the connections to targets. The guard of package egress checks the address of each connection.
package dial

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/proxy/egress"
	"github.com/lectern-dev/lectern/shared/egressproxy"
)

// Options holds the guard and the resolver that all transports of a Pool share.
type Options struct {
	// Guard decides which addresses may be dialled. Required.
	Guard *egress.Guard
	// Proxy is the proxy of the network, which then resolves names. The guard judges the names, and cannot judge addresses.
	Proxy egressproxy.Config
	// Resolver looks up names. Nil: net.DefaultResolver.
	Resolver *net.Resolver
}

// Pool keeps one http.Transport for each Key, so that endpoints share no connections. Some targets apply the first
// credential of a connection to all later requests on the same connection.
type Pool struct {
	o Options

	mu         sync.Mutex
	transports map[Key]*http.Transport
	kept       map[Key]bool // the keys of the last Keep; nil before the first one: all
}

// Key identifies a transport: the endpoint and the settings of its transport. An endpoint whose settings change gets
// another transport.
type Key struct {
	Endpoint string
	// Roots identifies the certificate authorities that the endpoint trusts.
	Roots string
	// Connect bounds the lookup of the name and the TCP connection together, and then the TLS handshake. 0: one minute
	// for each of the two.
	Connect time.Duration
	// Headers bounds the time from the end of a request to the headers of its answer. 0: no limit.
	Headers time.Duration
}

// maxHeaderBytes bounds the headers of an answer. The bound is far above the limits of browsers and servers.
const maxHeaderBytes = 256 << 10

// connectWithin is the time limit of a connection attempt, and of the TLS handshake, when Key.Connect is 0.
const connectWithin = time.Minute

// idleWithin is how long a connection is kept without a request. A POST over HTTP/1.1 is lost if it meets the target's
// close of an idle connection, because net/http does not repeat it. So idleWithin is shorter than the time of common
// servers: Node.js, Apache and Uvicorn have 5 s, and nginx has 75 s.
const idleWithin = 4 * time.Second

// NewPool returns a Pool without transports.
func NewPool(o Options) *Pool {
	return &Pool{o: o, transports: map[Key]*http.Transport{}}
}

// Transport returns the stored transport for key, and creates a transport if there is none. A new transport trusts
// roots; nil means the certificate authorities of the system. If the last Keep did not list key, the Pool does not
// store the new transport, and the transport keeps no idle connections.
func (p *Pool) Transport(key Key, roots *x509.CertPool) *http.Transport {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.transports[key]
	switch {
	case t != nil:
	case p.kept == nil || p.kept[key]:
		t = p.newTransport(key, roots)
		p.transports[key] = t
	default: // of a request that began under the policy before
		t = p.newTransport(key, roots)
		t.DisableKeepAlives = true
	}
	return t
}

func (p *Pool) newTransport(key Key, roots *x509.CertPool) *http.Transport {
	if key.Connect == 0 {
		key.Connect = connectWithin
	}
	dialer := &net.Dialer{
		Timeout:   key.Connect,
		KeepAlive: 30 * time.Second,
		Resolver:  p.o.Resolver,
	}
	if !p.o.Proxy.Enabled() {
		dialer.ControlContext = p.o.Guard.Control
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	t := &http.Transport{
		Proxy:                  nil, // HTTPS_PROXY must not redirect requests with credentials
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    key.Connect,
		ResponseHeaderTimeout:  key.Headers,
		Protocols:              protocols,
		DisableCompression:     true, // the caller and the target negotiate the encoding
		MaxIdleConns:           1024,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        idleWithin,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ExpectContinueTimeout:  time.Second,
		WriteBufferSize:        32 << 10,
		ReadBufferSize:         32 << 10,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	p.o.Proxy.Use(t, p.o.Guard.CheckName)
	return t
}

// Keep removes all transports except those with the given keys, and closes the idle connections of the removed ones.
// In-flight requests on a removed transport continue. Until the next Keep, the Pool stores no transport with another
// key.
func (p *Pool) Keep(keys map[Key]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = map[Key]bool{}
	maps.Copy(p.kept, keys)
	for key, t := range p.transports {
		if !keys[key] {
			delete(p.transports, key)
			t.CloseIdleConnections()
		}
	}
}

// Close removes all transports and closes their idle connections. Requests in flight continue.
func (p *Pool) Close() { p.Keep(nil) }
