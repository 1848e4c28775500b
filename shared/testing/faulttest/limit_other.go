//go:build !linux

package faulttest

import "testing"

// LimitFiles skips t: it needs Linux.
func LimitFiles(t testing.TB, _ int, _ uint64) (undo func()) {
	t.Skip("faulttest: limits on processes need Linux")
	return nil
}

// OpenFiles skips t: it needs Linux.
func OpenFiles(t testing.TB, _ int) int {
	t.Skip("faulttest: counting open files needs Linux")
	return 0
}

// SmallDisk skips t: it needs Linux.
func SmallDisk(t testing.TB, _ int64) (dir string, grow func(int64)) {
	t.Skip("faulttest: a small disk needs Linux")
	return "", nil
}
