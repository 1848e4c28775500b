//go:build !linux

package httpserver

import "net"

// keepUnsent does nothing: how much is buffered for a client is up to the system.
func keepUnsent(net.Conn, int) {}
