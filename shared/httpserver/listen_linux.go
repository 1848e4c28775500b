package httpserver

import (
	"net"
	"syscall"
)

// keepUnsent bounds what the kernel holds unsent for a client (TCP_NOTSENT_LOWAT, tcp(7)). Else it
// buffers megabytes for each slow reader, and lets us go on only when a third of that has gone out: a
// steady reader would look like a stalled one.
func keepUnsent(conn net.Conn, bytes int) {
	const notSentLowat = 25 // package syscall has no name for it
	c, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	// Where it fails, slow readers have a little less time.
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat, bytes)
	})
}
