package faulttest

import (
	"net"
	"net/netip"
	"sync"
	"testing"
)

// Peers is a listener on a loopback address, whose connections seem to come from other addresses. A server's test learns
// by it how the server treats peers in networks that a test machine does not have.
type Peers struct {
	net.Listener

	mu sync.Mutex
	by map[netip.Addr]net.IP // the address that a connection seems to come from, by its loopback address
}

// NewPeers returns an open listener. The server under test closes it.
func NewPeers(t testing.TB) *Peers {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &Peers{Listener: l, by: map[netip.Addr]net.IP{}}
}

// Dialer returns a dialer whose connections to p seem to come from address.
func (p *Peers) Dialer(address string) *net.Dialer {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.by)
	from := netip.AddrFrom4([4]byte{127, 77, byte(n / 250), byte(n%250 + 1)})
	p.by[from] = net.ParseIP(address)
	return &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
}

// Accept returns the next connection.
func (p *Peers) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	from := conn.RemoteAddr().(*net.TCPAddr)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ip := p.by[from.AddrPort().Addr().Unmap()]; ip != nil {
		return &peer{Conn: conn, from: &net.TCPAddr{IP: ip, Port: from.Port}}, nil
	}
	return conn, nil
}

type peer struct {
	net.Conn
	from net.Addr
}

// RemoteAddr returns the address that the connection seems to come from.
func (p *peer) RemoteAddr() net.Addr { return p.from }
