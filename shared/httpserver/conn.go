package httpserver

import (
	"context"
	"net"
	"net/http"
	"time"
)

// conn is a client's connection as net/http is given it. It refuses what is framed twice (see framing),
// and knows what net/http's own would not tell: until when it may be written to, and that an answer which
// is there as a whole can leave as a whole.
type conn struct {
	transport
	framing   framing
	attention attention
	held      *[]byte // what is written while it is held; nil: nothing is

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

// newConn makes a conn. Its client's leaving is told by departures; nil: found out by net/http.
func newConn(t transport, d *departures) *conn {
	c := &conn{transport: t, framing: newFraming()}
	d.add(c)
	return c
}

type connKey struct{}

// withConn makes a connection known to its requests, and ends them with it.
func withConn(ctx context.Context, nc net.Conn) context.Context {
	c := nc.(*conn) // accepting gives no others
	ctx, c.attention.cancel = context.WithCancel(ctx)
	return context.WithValue(ctx, connKey{}, c)
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

// Read reads up to the first byte that is refused. A read of one byte between requests is net/http's, which waits
// for the client to leave: no other is so short there, as its buffer is empty.
func (c *conn) Read(p []byte) (int, error) {
	if c.attention.reads(len(p) == 1 && c.framing.isBetween()) {
		return 0, nil
	}
	if c.framing.refused != nil {
		return 0, c.framing.refused
	}
	n, err := c.transport.Read(p)
	if good := c.framing.watch(p[:n]); c.framing.refused != nil {
		if good == 0 {
			return 0, c.framing.refused
		}
		return good, nil // the fault comes with the next call
	}
	return n, err
}

// Close closes the connection, and ends its requests.
func (c *conn) Close() error {
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

// Write sends p, or keeps it while the connection is held.
func (c *conn) Write(p []byte) (int, error) {
	if c.held != nil {
		*c.held = append(*c.held, p...)
		return len(p), nil
	}
	return c.send(p)
}

// send writes, within the deadline if there is one.
func (c *conn) send(p []byte) (int, error) {
	if c.lifted && !c.writeBy.IsZero() {
		if err := c.transport.SetWriteDeadline(time.Time{}); err != nil {
			return 0, err
		}
		c.writeBy = time.Time{}
	}
	return c.transport.Write(p)
}

// hold keeps what is written from now on in buffer, until release.
func (c *conn) hold(buffer *[]byte) { c.held = buffer }

// release sends what was held, with one system call and in as few packets as may be.
func (c *conn) release() error {
	held := *c.held
	c.held = nil
	_, err := c.send(held)
	return err
}
