package faulttest

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"unsafe"
)

// LimitFiles allows the process pid at most n open files from now on (prlimit(2)). undo restores the old limit.
func LimitFiles(t testing.TB, pid int, n uint64) (undo func()) {
	t.Helper()
	var before syscall.Rlimit
	now := syscall.Rlimit{Cur: n, Max: 0}
	if errno := prlimit(pid, nil, &before); errno != 0 {
		t.Fatalf("faulttest: prlimit: %v", errno)
	}
	now.Max = before.Max // only a privileged process could raise the hard limit again
	if errno := prlimit(pid, &now, nil); errno != 0 {
		t.Fatalf("faulttest: prlimit: %v", errno)
	}
	return func() {
		if errno := prlimit(pid, &before, nil); errno != 0 {
			t.Errorf("faulttest: prlimit: %v", errno)
		}
	}
}

func prlimit(pid int, set, get *syscall.Rlimit) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_NOFILE,
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), 0, 0)
	return errno
}

// OpenFiles returns the number of open files of the process pid.
func OpenFiles(t testing.TB, pid int) int {
	t.Helper()
	open, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		t.Fatalf("faulttest: %v", err)
	}
	return len(open)
}

// SmallDisk mounts a file system of the given size on an empty folder that any user may enter. It returns the folder
// and a function that makes the file system larger. It skips t if this process cannot mount.
func SmallDisk(t testing.TB, bytes int64) (dir string, grow func(bytes int64)) {
	t.Helper()
	dir, err := os.MkdirTemp("", "faulttest-")
	if err != nil {
		t.Fatalf("faulttest: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) }) // the folder is empty after the unmount
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755,size="+strconv.FormatInt(bytes, 10)); err != nil {
		t.Skipf("faulttest: a small disk needs the right to mount: %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatalf("faulttest: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("faulttest: unmount: %v", err)
		}
	})
	return dir, func(bytes int64) {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size="+strconv.FormatInt(bytes, 10)); err != nil {
			t.Fatalf("faulttest: remount: %v", err)
		}
	}
}
