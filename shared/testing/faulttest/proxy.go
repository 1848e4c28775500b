package faulttest

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards TCP connections to a server, with faults that a test sets. It is safe for concurrent use. Each
// method takes effect on open connections and on later ones.
type Proxy struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed when the mode changes
	delay   time.Duration // of each piece of data, in both directions
	silent  bool          // nothing is forwarded
	refuses bool          // new connections are reset
	budget  int64         // bytes from the server until a connection is reset; -1: any number
	cuts    int           // connections that were reset because of budget
	fatal   []byte        // the argument of RefuseAt
	conns   map[*net.TCPConn]struct{}
	closed  bool
}

// NewProxy returns a Proxy to target, host and port, until t ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("faulttest: %v", err)
	}
	p := &Proxy{target: target, listener: l, changed: make(chan struct{}), budget: -1, conns: map[*net.TCPConn]struct{}{}}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the proxy's address, host and port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Heal removes all faults.
func (p *Proxy) Heal() {
	p.change(func() { p.delay, p.silent, p.refuses, p.budget, p.fatal = 0, false, false, -1, nil })
}

// Slow delays each piece of data by d, in both directions. Delays of successive pieces overlap, as on a long line.
func (p *Proxy) Slow(d time.Duration) { p.change(func() { p.delay = d }) }

// Silence keeps connections open and forwards nothing, like a network that drops packets: half-open connections.
func (p *Proxy) Silence() { p.change(func() { p.silent = true }) }

// Refuse resets all connections, and each new one.
func (p *Proxy) Refuse() {
	p.change(func() { p.refuses = true })
	p.Reset()
}

// Reset resets the open connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.SetLinger(0) // an error means that the connection is closed already
		_ = c.Close()
	}
}

// CutAfter resets the connection that forwards the n-th byte from the server. It counts from now on, over all
// connections. Then the proxy forwards everything again.
func (p *Proxy) CutAfter(n int64) { p.change(func() { p.budget = n }) }

// RefuseAt calls [Proxy.Refuse] when a client sends text, before the server receives it. It does not find text that
// arrives in two pieces.
func (p *Proxy) RefuseAt(text string) { p.change(func() { p.fatal = []byte(text) }) }

// Refuses reports whether new connections are reset.
func (p *Proxy) Refuses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refuses
}

// Cuts returns the number of connections that [Proxy.CutAfter] has reset.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

func (p *Proxy) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.change(func() { p.silent = false })
	p.Reset()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		client := c.(*net.TCPConn)
		p.mu.Lock()
		refuses := p.refuses || p.closed
		p.mu.Unlock()
		if refuses {
			_ = client.SetLinger(0)
			_ = client.Close()
			continue
		}
		p.running.Go(func() { p.serve(client) })
	}
}

// serve connects a client with the server.
func (p *Proxy) serve(client *net.TCPConn) {
	defer client.Close()
	s, err := net.DialTimeout("tcp", p.target, time.Minute)
	if err != nil {
		_ = client.SetLinger(0) // the server is down, so reset the client's connection
		return
	}
	server := s.(*net.TCPConn)
	defer server.Close()
	if !p.hold(client, server) {
		return
	}
	defer p.forget(client, server)
	var passing sync.WaitGroup
	passing.Go(func() { p.pass(server, client, false) })
	passing.Go(func() { p.pass(client, server, true) })
	passing.Wait()
}

func (p *Proxy) hold(conns ...*net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
	return true
}

func (p *Proxy) forget(conns ...*net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

// piece is data from one read, with the time when it may be forwarded.
type piece struct {
	bytes []byte
	due   time.Time
}

// pass forwards bytes from one connection to the other until one of them ends.
func (p *Proxy) pass(to, from *net.TCPConn, fromServer bool) {
	queue := make(chan piece, 1024) // the data in transit
	var writing sync.WaitGroup
	writing.Go(func() {
		defer func() {
			for range queue { // drain the queue, so that the reader does not block
			}
		}()
		for next := range queue {
			if !p.deliver(to, from, next, fromServer) {
				_ = from.Close()
				return
			}
		}
		_ = to.CloseWrite() // forward the end of the stream
	})
	for {
		b := make([]byte, 32<<10)
		n, err := from.Read(b)
		if n > 0 {
			p.mu.Lock()
			due := time.Now().Add(p.delay)
			p.mu.Unlock()
			queue <- piece{b[:n], due}
		}
		if err != nil {
			break
		}
	}
	close(queue)
	writing.Wait()
}

// deliver writes one piece when it is due, and reports whether more can follow.
func (p *Proxy) deliver(to, from *net.TCPConn, next piece, fromServer bool) bool {
	for {
		p.mu.Lock()
		silent, changed, closed := p.silent, p.changed, p.closed
		p.mu.Unlock()
		if closed {
			return false
		}
		if !silent {
			break
		}
		<-changed
	}
	if wait := time.Until(next.due); wait > 0 {
		timer := time.NewTimer(wait)
		<-timer.C
	}
	cut := false
	if !fromServer && p.matchesFatal(next.bytes) {
		p.Refuse()
		return false
	}
	if fromServer {
		p.mu.Lock()
		if p.budget >= 0 {
			if cut = p.budget < int64(len(next.bytes)); cut {
				next.bytes = next.bytes[:p.budget]
				p.budget = -1
				p.cuts++
			} else {
				p.budget -= int64(len(next.bytes))
			}
		}
		p.mu.Unlock()
	}
	_, err := to.Write(next.bytes)
	if cut {
		for _, c := range []*net.TCPConn{to, from} {
			_ = c.SetLinger(0)
			_ = c.Close()
		}
	}
	return err == nil && !cut && !errors.Is(err, net.ErrClosed)
}

// matchesFatal reports whether sent contains the text of RefuseAt.
func (p *Proxy) matchesFatal(sent []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.fatal) > 0 && bytes.Contains(sent, p.fatal)
}
