package rawtcp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// read is read(2), of one byte at least.
func read(fd uintptr, p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	received()
	return int(n), nil
}

// write is write(2), of one byte at least.
func write(fd uintptr, p []byte) (int, error) {
	sending()
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Arrived returns how many bytes have arrived and were not read; 0 when that can not be told.
func (c *Conn) Arrived() (n int) {
	failed := c.raw.Control(func(fd uintptr) {
		n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ) // 0 where it fails
	})
	if failed != nil {
		return 0
	}
	return n
}
