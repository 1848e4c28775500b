package httpserver

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// limitUnsent bounds the bytes that the kernel holds unsent for each client of a listener (TCP_NOTSENT_LOWAT, tcp(7)).
// Accepted connections inherit the option. It is a net.ListenConfig's Control.
//
// Without it the kernel buffers megabytes for a slow client, and lets the server write again only when a third of them
// has been sent. A slow client that reads steadily would then look like a stalled one.
func limitUnsent(_, _ string, conn syscall.RawConn) error {
	return conn.Control(func(fd uintptr) {
		// A kernel that refuses the option gives slow clients less time. That is no reason not to serve.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxWrite/2)
	})
}
