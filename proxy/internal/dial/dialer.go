package dial

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options is what connections are made with.
type Options struct {
	// Guard says where to. Required.
	Guard *Guard
	// Resolver looks names up. Nil: the system's.
	Resolver *net.Resolver
	// MaxHeaderBytes bounds the headers of an answer. 0: 256 KiB.
	MaxHeaderBytes int64
	// IdleTimeout is how long a connection without a request is kept. 0: 90 s.
	IdleTimeout time.Duration
}

// connectWithin bounds a connection attempt that nobody waits for any more: those that do have a limit of
// their own.
const connectWithin = time.Minute

// newTransport returns a transport that goes straight to its targets, by the guard, and verifies whom it
// speaks with.
func newTransport(o Options, roots *x509.CertPool) *http.Transport {
	dialer := &net.Dialer{
		Timeout:        connectWithin,
		KeepAlive:      30 * time.Second,
		Resolver:       o.Resolver,
		ControlContext: o.Guard.Control,
	}
	if o.MaxHeaderBytes == 0 {
		o.MaxHeaderBytes = 256 << 10
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 90 * time.Second
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		Proxy:                  nil, // the environment has no say in where credentials go
		DialContext:            dialer.DialContext,
		Protocols:              protocols,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    connectWithin,
		DisableCompression:     true, // encodings are between caller and target
		MaxIdleConns:           1024,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        o.IdleTimeout,
		MaxResponseHeaderBytes: o.MaxHeaderBytes,
		ExpectContinueTimeout:  time.Second,
		WriteBufferSize:        32 << 10,
		ReadBufferSize:         32 << 10,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// Pool keeps a transport for each endpoint: no two share connections, as targets are known that take a
// connection's first credential for all that follows on it.
type Pool struct {
	o Options

	mu         sync.Mutex
	transports map[Key]*http.Transport
}

// Key tells endpoints, and their authorities, apart.
type Key struct{ Endpoint, Roots string }

// NewPool returns an empty Pool.
func NewPool(o Options) *Pool { return &Pool{o: o, transports: map[Key]*http.Transport{}} }

// Transport returns the transport of an endpoint, which trusts roots, nil for the system's.
func (p *Pool) Transport(key Key, roots *x509.CertPool) *http.Transport {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.transports[key]
	if t == nil {
		t = newTransport(p.o, roots)
		p.transports[key] = t
	}
	return t
}

// Keep drops the transports of all endpoints but these. Requests that run on one go on.
func (p *Pool) Keep(keys map[Key]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, t := range p.transports {
		if !keys[key] {
			delete(p.transports, key)
			t.CloseIdleConnections()
		}
	}
}

// Close closes the connections that no request uses.
func (p *Pool) Close() { p.Keep(nil) }
