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
	framing framing
	writeBy time.Time // the write deadline; zero: none. Only the handler's goroutine sets it.
	held    *[]byte   // what is written while it is held; nil: nothing is
}

// transport is what net/http and the handlers ask of a connection: [net.TCPConn]. What it can do besides
// would go past Read and Write.
type transport interface {
	net.Conn
	CloseWrite() error
	SetLinger(seconds int) error
}

func newConn(t transport) *conn { return &conn{transport: t, framing: newFraming()} }

type connKey struct{}

// withConn makes a connection known to its requests.
func withConn(ctx context.Context, c net.Conn) context.Context {
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

// Read reads up to the first byte that is refused.
func (c *conn) Read(p []byte) (int, error) {
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

// SetWriteDeadline bounds the writes to come.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writeBy = t
	return c.transport.SetWriteDeadline(t)
}

// Write sends p, or keeps it while the connection is held.
func (c *conn) Write(p []byte) (int, error) {
	if c.held != nil {
		*c.held = append(*c.held, p...)
		return len(p), nil
	}
	return c.transport.Write(p)
}

// hold keeps what is written from now on in buffer, until release.
func (c *conn) hold(buffer *[]byte) { c.held = buffer }

// release sends what was held, with one system call and in as few packets as may be.
func (c *conn) release() error {
	held := *c.held
	c.held = nil
	_, err := c.transport.Write(held)
	return err
}
