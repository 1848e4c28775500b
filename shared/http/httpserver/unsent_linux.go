package httpserver

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// limitUnsent bounds the bytes that the kernel holds unsent for each client of a listener (TCP_NOTSENT_LOWAT, tcp(7)).
// Accepted connections inherit the option. A net.ListenConfig calls limitUnsent as its Control.
//
// Without the option, the kernel may buffer megabytes for a slow client, and accept more only after the client has
// taken a third. A client that reads slowly but steadily would then look stalled.
func limitUnsent(_, _ string, conn syscall.RawConn) error {
	return conn.Control(func(fd uintptr) {
		// A kernel that refuses the option gives slow clients less time. That is no reason not to serve.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxWrite/2)
	})
}
