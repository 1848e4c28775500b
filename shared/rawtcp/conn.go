// Package rawtcp owns how a TCP connection is read and written without telling Go's scheduler: small reads and writes
// of a socket that does not wait take a microsecond or two, and need nobody to look after them. Package syscall tells
// the scheduler of each; the first one after a moment at rest wakes the runtime's monitor (sysmon), a thread that then
// looks around every 20 µs. A server that answers one request at a time pays for that at each of its reads.
//
// Whoever waits, waits as in package net; deadlines and Close are package net's.
package rawtcp

import (
	"errors"
	"net"
)

// ErrNothing is TryRead's when nothing has arrived. Its Timeout and Temporary are true, so that crypto/tls can go on
// after it.
var ErrNothing net.Error = nothing{}

type nothing struct{}

// Error is the fault.
func (nothing) Error() string { return "rawtcp: nothing to read" }

// Timeout is true.
func (nothing) Timeout() bool { return true }

// Temporary is true.
func (nothing) Temporary() bool { return true }

// called gives a fault the name of what was called, as package net does.
func called(op string, err error) error {
	var failed *net.OpError
	if errors.As(err, &failed) {
		named := *failed
		named.Op = op
		return &named
	}
	return err
}
