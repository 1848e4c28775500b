package h1

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"math"
	"net"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/shared/rawtcp"
)

// Conn is a connection that can be asked whether its other end is still there, and silent.
type Conn struct {
	net.Conn // what is written to and read from: TLS, or the socket itself
	socket   *socket
	one      [1]byte // for quiet
}

// NewConn makes a Conn of a connection of the system, which it closes should it fail. With a config it shakes
// hands as a TLS client.
func NewConn(ctx context.Context, plain net.Conn, config *tls.Config) (*Conn, error) {
	s := &socket{Conn: plain}
	if tcp, ok := plain.(*net.TCPConn); ok {
		s.tcp = rawtcp.New(tcp)
		s.Conn = s.tcp
	}
	if config == nil {
		return &Conn{Conn: s, socket: s}, nil
	}
	secure := tls.Client(s, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = plain.Close() // the handshake's fault says more
		return nil, err
	}
	return &Conn{Conn: secure, socket: s}, nil
}

// TLS returns the connection's TLS, nil when it has none.
func (c *Conn) TLS() *tls.Conn {
	secure, _ := c.Conn.(*tls.Conn)
	return secure
}

// quiet tells whether a connection between requests can be used: its other end has neither closed it nor said
// anything. What TLS says to itself, such as a ticket, is taken in.
func (c *Conn) quiet() bool {
	c.socket.probing = true
	_, err := c.Conn.Read(c.one[:])
	c.socket.probing = false
	return err == rawtcp.ErrNothing
}

// socket is a connection of the system, below TLS.
type socket struct {
	net.Conn
	tcp     *rawtcp.Conn // the same; nil where it is another kind, of which nobody can tell what has arrived
	probing bool         // reads do not wait
	written atomic.Int64 // bytes
}

// Read reads; while the connection is probed it fails with rawtcp.ErrNothing instead of waiting.
func (s *socket) Read(p []byte) (int, error) {
	switch {
	case !s.probing:
		return s.Conn.Read(p)
	case s.tcp == nil:
		return 0, io.ErrNoProgress
	}
	return s.tcp.TryRead(p)
}

// Write writes.
func (s *socket) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.written.Add(int64(n))
	return n, err
}

// arrived returns how many bytes have arrived and were not read; 0 when that can not be told.
func (s *socket) arrived() int {
	if s.tcp == nil {
		return 0
	}
	return s.tcp.Arrived()
}

// place tells connections apart that can not stand for each other.
type place struct{ scheme, address string }

// conn is a Conn in the hands of a Transport: of one request at a time, or idle.
type conn struct {
	*Conn
	place place
	used  bool // by a request before
	since time.Time

	left   int64 // what may still be read; of an answer's body: anything
	begun  bool  // a byte of the answer has come
	stop   func() bool
	reader *bufio.Reader // of the answer; nil between requests
}

// begin gives the connection to a request, whose end is the connection's should it come first.
func (c *conn) begin(ctx context.Context, maxHeaderBytes int64) {
	c.left, c.begun = maxHeaderBytes, false
	c.stop = context.AfterFunc(ctx, func() { _ = c.Conn.Close() }) // who uses it gets the fault
}

// bodyFollows lifts the limit on what is read.
func (c *conn) bodyFollows() { c.left = math.MaxInt64 }

// Read reads what the target sends.
func (c *conn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errHeaders
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.left -= int64(n)
		c.begun = true
	}
	return n, err
}

// abandon closes the connection in the middle of a request.
func (c *conn) abandon() {
	c.stop()
	_ = c.Conn.Close() // nobody is left to be told
}
