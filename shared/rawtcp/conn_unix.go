//go:build unix

package rawtcp

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// small is the largest read or write, in bytes, that the scheduler is not told of: in copying more a processor could
// be missed.
const small = 16 << 10

// Conn is a TCP connection. Its methods may be called at the same time, as those of [net.Conn].
type Conn struct {
	*net.TCPConn
	raw     syscall.RawConn
	reading transfer
	writing transfer
}

// transfer is what goes in one direction. What the system is asked for it is asked by do, which is made once.
type transfer struct {
	mu    sync.Mutex
	do    func(fd uintptr) (done bool)
	p     []byte
	n     int
	err   error
	waits bool // until there is something to do
}

// New returns the connection, which is read and written by nobody else from then on.
func New(c *net.TCPConn) *Conn {
	raw, _ := c.SyscallConn() // fails for nil alone
	conn := &Conn{TCPConn: c, raw: raw}
	conn.reading.do = conn.reading.read
	conn.writing.do = conn.writing.write
	return conn
}

// Read reads what has arrived, or waits for it.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 || len(p) > small {
		return c.TCPConn.Read(p)
	}
	return c.read(p, true)
}

// TryRead reads what has arrived; ErrNothing if there is nothing.
func (c *Conn) TryRead(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return c.read(p, false)
}

func (c *Conn) read(p []byte, waits bool) (int, error) {
	t := &c.reading
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p, t.n, t.err, t.waits = p, 0, nil, waits
	failed := c.raw.Read(t.do)
	t.p = nil
	switch {
	case failed != nil:
		return 0, called("read", failed)
	case t.err == syscall.EAGAIN:
		return 0, ErrNothing
	case t.err != nil:
		return 0, c.fault("read", t.err)
	case t.n == 0:
		return 0, io.EOF
	}
	return t.n, nil
}

func (t *transfer) read(fd uintptr) (done bool) {
	for {
		switch t.n, t.err = read(fd, t.p); t.err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return !t.waits
		default:
			return true
		}
	}
}

// Write writes all of p, or says what part of it and why no more.
func (c *Conn) Write(p []byte) (int, error) {
	if len(p) == 0 || len(p) > small {
		return c.TCPConn.Write(p)
	}
	t := &c.writing
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p, t.n, t.err = p, 0, nil
	failed := c.raw.Write(t.do)
	t.p = nil
	if failed != nil {
		return t.n, called("write", failed)
	}
	if t.err != nil {
		return t.n, c.fault("write", t.err)
	}
	return t.n, nil
}

func (t *transfer) write(fd uintptr) (done bool) {
	for t.n < len(t.p) {
		n, err := write(fd, t.p[t.n:])
		switch err {
		case nil:
			t.n += n
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			t.err = err
			return true
		}
	}
	return true
}

func (c *Conn) fault(op string, err error) error {
	return &net.OpError{
		Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, err),
	}
}
