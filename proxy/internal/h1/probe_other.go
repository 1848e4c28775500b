//go:build !unix

package h1

import (
	"errors"
	"net"
	"os"
	"time"
)

// prober reads what has arrived on a connection, nearly without waiting.
type prober struct{ net.Conn }

func newProber(c net.Conn) *prober { return &prober{c} }

// Read returns errNothing when there is nothing yet.
func (r *prober) Read(p []byte) (int, error) {
	if err := r.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return 0, err
	}
	n, err := r.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errNothing
	}
	if failed := r.SetReadDeadline(time.Time{}); failed != nil && err == nil {
		err = failed
	}
	return n, err
}
