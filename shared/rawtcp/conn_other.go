//go:build !unix

package rawtcp

import (
	"errors"
	"net"
	"os"
	"time"
)

// Conn is a TCP connection of package net.
type Conn struct{ *net.TCPConn }

// New returns the connection.
func New(c *net.TCPConn) *Conn { return &Conn{c} }

// TryRead reads what has arrived, nearly without waiting; ErrNothing if there is nothing.
func (c *Conn) TryRead(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return 0, err
	}
	n, err := c.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = ErrNothing
	}
	if failed := c.SetReadDeadline(time.Time{}); failed != nil && err == nil {
		err = failed
	}
	return n, err
}

// Arrived returns 0: how many bytes have arrived can not be told.
func (c *Conn) Arrived() int { return 0 }
