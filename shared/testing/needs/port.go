package needs

import (
	"errors"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// Port returns a TCP port of 127.0.0.1 that belongs to t until t ends. Servers of t may listen on the port, end and
// listen again. While no server listens, the port refuses connections.
//
// A socket that is bound and does not listen holds the port. Linux lets a server with SO_REUSEADDR listen next to such a
// socket (socket(7)). Linux gives the port to no other listener that asks for any port, and to no client. Other systems
// let no server listen there, so Port releases the port at once, and another program may take the port.
func Port(t testing.TB) int {
	t.Helper()
	syscall.ForkLock.RLock() // no child process inherits the socket
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatalf("a port of the test's own: socket: %v", err)
	}
	release := func() { _ = syscall.Close(socket) }
	if runtime.GOOS == "linux" {
		t.Cleanup(release)
	} else {
		defer release()
	}
	err = errors.Join(
		syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	address, nameErr := syscall.Getsockname(socket)
	if err := errors.Join(err, nameErr); err != nil {
		t.Fatalf("a port of the test's own: %v", err)
	}
	return address.(*syscall.SockaddrInet4).Port
}

// Address returns a [Port] with its host.
func Address(t testing.TB) string {
	t.Helper()
	return "127.0.0.1:" + strconv.Itoa(Port(t))
}
