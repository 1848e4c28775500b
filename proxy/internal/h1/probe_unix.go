//go:build unix

package h1

import (
	"io"
	"net"
	"syscall"
)

// prober reads what has arrived on a connection of the system, without waiting. One goroutine uses it at a time.
type prober struct {
	raw  syscall.RawConn    // nil: nobody can tell
	read func(uintptr) bool // made once: it is an allocation

	p   []byte // what the read is into
	n   int    // and what came of it
	err error
}

func newProber(c net.Conn) *prober {
	r := &prober{}
	if system, ok := c.(syscall.Conn); ok {
		r.raw, _ = system.SyscallConn() // nil when it is closed already
	}
	r.read = func(fd uintptr) bool {
		for {
			if r.n, r.err = syscall.Read(int(fd), r.p); r.err != syscall.EINTR {
				return true // whatever came of it: false would wait
			}
		}
	}
	return r
}

// Read returns errNothing when there is nothing yet.
func (r *prober) Read(p []byte) (int, error) {
	if r.raw == nil {
		return 0, io.ErrNoProgress
	}
	r.p = p
	failed := r.raw.Read(r.read)
	r.p = nil
	switch {
	case failed != nil:
		return 0, failed
	case r.err == syscall.EAGAIN:
		return 0, errNothing
	case r.err != nil:
		return 0, r.err
	case r.n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return r.n, nil
}
