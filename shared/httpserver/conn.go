package httpserver

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// conn is a client's connection as net/http is given it. It refuses what is framed twice (see framing), lets simple
// requests be answered before net/http sees them (see direct), and knows until when it may be written to.
type conn struct {
	transport
	framing   framing
	attention attention
	direct    *direct         // nil: net/http answers all
	taken     atomic.Bool     // net/http has a request of it, or gave it away
	stage     atomic.Int32    // a stage
	ctx       context.Context // of its requests
	remote    string          // the client's address

	// The write deadline as the system has it; zero: none. Only the handler's goroutine sets it.
	writeBy time.Time
	// It counts no longer: net/http lifts it behind each answer, which the next answer may go on with.
	lifted bool
}

// transport is what net/http and the handlers ask of a connection: [net.TCPConn]. What it can do besides
// would go past Read and Write.
type transport interface {
	net.Conn
	CloseWrite() error
	SetLinger(seconds int) error
}

// newConn makes a conn. Its client's leaving is told by departures; nil: found out by net/http. Direct answers what it
// can, which takes departures; nil: net/http answers all.
func newConn(t transport, departures *departures, direct *direct) *conn {
	c := &conn{transport: t, framing: newFraming()}
	departures.add(c)
	if c.attention.departures != nil {
		c.direct = direct
	}
	return c
}

type connKey struct{}

// withConn makes a connection known to its requests, and ends them with it.
func withConn(ctx context.Context, nc net.Conn) context.Context {
	c := nc.(*conn) // accepting gives no others
	ctx, c.attention.cancel = context.WithCancel(ctx)
	ctx = context.WithValue(ctx, connKey{}, c)
	if c.direct != nil {
		c.ctx = context.WithValue(ctx, http.LocalAddrContextKey, c.LocalAddr()) // which net/http adds after this
		c.remote = c.RemoteAddr().String()
	}
	return ctx
}

// connOf returns the connection that a request has to itself: nil when it shares one with others, as in
// HTTP/2.
func connOf(r *http.Request) *conn {
	if r.ProtoMajor != 1 {
		return nil
	}
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// Read reads up to the first byte that is refused, of what net/http is to answer. A read of one byte between requests
// is net/http's, which waits for the client to leave: no other is so short there, as its buffer is empty.
func (c *conn) Read(p []byte) (int, error) {
	if c.attention.reads(len(p) == 1 && c.framing.isBetween()) {
		return 0, nil
	}
	if c.framing.refused != nil {
		return 0, c.framing.refused
	}
	n, err := c.transport.Read(p)
	if n > 0 && c.direct != nil && !c.taken.Load() && c.framing.isAtRequest() {
		n, err = c.direct.serve(c, p, n)
	}
	if good := c.framing.watch(p[:n]); c.framing.refused != nil {
		if good == 0 {
			return 0, c.framing.refused
		}
		return good, nil // the fault comes with the next call
	}
	return n, err
}

// Close closes the connection, and ends its requests; behind the answer where net/http, which knows of none, takes it
// for idle.
func (c *conn) Close() error {
	if c.stage.CompareAndSwap(answering, ending) {
		return nil
	}
	c.attention.end()
	return c.transport.Close()
}

// SetWriteDeadline bounds the writes to come. To lift the bound, zero, is left to the next of them.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		c.lifted = true
		return nil
	}
	c.lifted, c.writeBy = false, t
	return c.transport.SetWriteDeadline(t)
}

// goesOn keeps the write deadline of the answers before, where it leaves that much time from now. It tells whether it
// does.
func (c *conn) goesOn(now time.Time, leaves time.Duration) bool {
	if c.writeBy.Sub(now) < leaves {
		return false
	}
	c.lifted = false
	return true
}

// Write sends p, within the deadline if there is one.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.lift(); err != nil {
		return 0, err
	}
	return c.transport.Write(p)
}

// writeAll sends the parts with one system call, as Write does.
func (c *conn) writeAll(parts net.Buffers) error {
	if err := c.lift(); err != nil {
		return err
	}
	_, err := parts.WriteTo(c.transport)
	return err
}

// lift takes away a write deadline that no longer counts.
func (c *conn) lift() error {
	if !c.lifted || c.writeBy.IsZero() {
		return nil
	}
	c.writeBy = time.Time{}
	return c.transport.SetWriteDeadline(time.Time{})
}
