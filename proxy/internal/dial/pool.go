package dial

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options configures a Pool.
type Options struct {
	// Guard decides which addresses may be dialled. Required.
	Guard *Guard
	// Resolver looks up names. Nil: the system's.
	Resolver *net.Resolver
	// MaxHeaderBytes bounds the headers of an answer, in bytes. 0: 256 KiB.
	MaxHeaderBytes int64
	// IdleTimeout is how long a connection without a request is kept. 0: 90 s.
	IdleTimeout time.Duration
}

// Pool keeps one http.Transport for each endpoint. Endpoints share no connections, because some targets apply the
// first credential of a connection to all requests that follow on it.
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
	// Connect bounds the TCP connection, and the TLS handshake after it separately. 0: one minute.
	Connect time.Duration
	// Headers bounds the time from the end of a request to the headers of its answer. 0: no limit.
	Headers time.Duration
}

// connectWithin bounds a connection attempt of an endpoint that sets no limit.
const connectWithin = time.Minute

// NewPool returns an empty Pool.
func NewPool(o Options) *Pool {
	if o.MaxHeaderBytes == 0 {
		o.MaxHeaderBytes = 256 << 10
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 90 * time.Second
	}
	return &Pool{o: o, transports: map[Key]*http.Transport{}}
}

// Transport returns the transport of an endpoint. It trusts roots; nil means the system's. For a key that the last Keep
// dropped, the Pool forgets the transport, which keeps no idle connection.
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
		Timeout:        key.Connect,
		KeepAlive:      30 * time.Second,
		Resolver:       p.o.Resolver,
		ControlContext: p.o.Guard.Control,
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		Proxy:                  nil, // HTTPS_PROXY must not redirect requests with credentials
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    key.Connect,
		ResponseHeaderTimeout:  key.Headers,
		Protocols:              protocols,
		DisableCompression:     true, // the caller and the target negotiate the encoding
		MaxIdleConns:           1024,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        p.o.IdleTimeout,
		MaxResponseHeaderBytes: p.o.MaxHeaderBytes,
		ExpectContinueTimeout:  time.Second,
		WriteBufferSize:        32 << 10,
		ReadBufferSize:         32 << 10,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// Keep removes all transports except those with the given keys. Requests in flight on a removed transport continue. A nil
// map removes all.
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

// Close removes all transports and closes their idle connections.
func (p *Pool) Close() { p.Keep(nil) }
