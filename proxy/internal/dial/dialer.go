package dial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/proxy/internal/h1"
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

// dialer goes straight to its targets, by the guard, and verifies whom it speaks with.
type dialer struct {
	net.Dialer
	config *tls.Config
}

func newDialer(o Options, roots *x509.CertPool) *dialer {
	return &dialer{
		net.Dialer{
			Timeout:        connectWithin,
			KeepAlive:      30 * time.Second,
			Resolver:       o.Resolver,
			ControlContext: o.Guard.Control,
		},
		&tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: roots, NextProtos: []string{"h2", "http/1.1"},
			DynamicRecordSizingDisabled: true, // small records only help who shows a page while it comes
		},
	}
}

// connect connects to an address, host:port: over TLS where the scheme is https.
func (d *dialer) connect(ctx context.Context, scheme, address string) (*h1.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	plain, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if scheme != "https" {
		return h1.NewConn(ctx, plain, nil)
	}
	config := d.config.Clone()
	config.ServerName, _, _ = net.SplitHostPort(address) // it was just connected to
	return h1.NewConn(ctx, plain, config)
}

// Pool keeps a transport for each endpoint: no two share connections, as targets are known that take a
// connection's first credential for all that follows on it.
type Pool struct {
	o Options

	mu         sync.Mutex
	transports map[Key]*Transport
}

// Key tells endpoints, and their authorities, apart.
type Key struct{ Endpoint, Roots string }

// NewPool returns an empty Pool.
func NewPool(o Options) *Pool {
	if o.MaxHeaderBytes == 0 {
		o.MaxHeaderBytes = 256 << 10
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 90 * time.Second
	}
	return &Pool{o: o, transports: map[Key]*Transport{}}
}

// Transport returns the transport of an endpoint, which trusts roots, nil for the system's.
func (p *Pool) Transport(key Key, roots *x509.CertPool) *Transport {
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
			t.close()
		}
	}
}

// Close closes the connections that no request uses.
func (p *Pool) Close() { p.Keep(nil) }
