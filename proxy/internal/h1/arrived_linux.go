package h1

import "golang.org/x/sys/unix"

// arrived returns how many bytes have arrived and were not read; 0 when that can not be told.
func (r *prober) arrived() (n int) {
	if r.raw == nil {
		return 0
	}
	failed := r.raw.Control(func(fd uintptr) {
		n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ) // 0 where it fails
	})
	if failed != nil {
		return 0
	}
	return n
}
