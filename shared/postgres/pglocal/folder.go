package pglocal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// folder is the folder of one server, locked for this process. The folder contains:
//
//	data/      the data folder of Postgres
//	password   the superuser's password, for TCP
//	lock       the lock, held by the process that runs the server
//	.s.PGSQL…  the socket, unless the folder's path is too long for a socket
type folder struct {
	root   string // real path
	socket string // folder of the socket
	owner  owner
	lock   *os.File
}

const (
	elsewhere = "/var/tmp" // survives a restart of the machine, unlike /tmp

	// sockaddr_un holds 108 bytes with the closing NUL on Linux, 104 on the BSDs and macOS.
	longestSocket = 103
)

func (f *folder) data() string     { return filepath.Join(f.root, "data") }
func (f *folder) password() string { return filepath.Join(f.root, "password") }

// name returns the name of a folder in /var/tmp or /tmp that replaces the path wished if the server cannot use wished.
func name(wished string) string {
	sum := sha256.Sum256([]byte(wished))
	return "lectern-pg-" + hex.EncodeToString(sum[:8])
}

// openFolder creates or opens the folder at wished and locks it for this process. The error wraps [ErrInUse] if another
// server has the lock.
func openFolder(wished string) (*folder, error) {
	wished, err := filepath.Abs(wished)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(wished), 0o755); err != nil {
		return nil, err
	}
	o, err := ownerOf(wished)
	if err != nil {
		return nil, err
	}
	f := &folder{owner: o}
	if f.root, err = settle(wished, o); err != nil {
		return nil, err
	}
	if err := f.acquire(); err != nil {
		return nil, err
	}
	f.socket = f.root
	if len(filepath.Join(f.socket, socketName)) > longestSocket {
		f.socket = filepath.Join("/tmp", name(f.root))
		if err := o.privateDir(f.socket); err != nil {
			f.release()
			return nil, err
		}
	}
	return f, nil
}

// settle returns the real folder for wished. If o can enter wished, the real folder is wished itself. Otherwise the
// real folder is a folder in /var/tmp, and wished becomes a link to that folder. If wished is a link already, the real
// folder is its target.
func settle(wished string, o owner) (string, error) {
	other := filepath.Join(elsewhere, name(wished))
	info, err := os.Lstat(wished)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(wished)
		if err != nil {
			return "", err
		}
		if target == other {
			// Create it again if a cleaner of temporary files has removed it.
			return other, o.privateDir(other)
		}
		resolved, err := filepath.EvalSymlinks(wished)
		if err != nil {
			return "", fmt.Errorf("%s is a link that leads nowhere: %w", wished, err)
		}
		return resolved, o.privateDir(resolved)
	}
	if err := o.privateDir(wished); err != nil {
		return "", err
	}
	if may, err := o.mayEnter(wished); err != nil {
		return "", fmt.Errorf("find out whether the user with id %d can enter %s: %w", o.uid, wished, err)
	} else if may {
		return filepath.EvalSymlinks(wished)
	}
	if err := o.privateDir(other); err != nil {
		return "", err
	}
	// Remove only an empty folder. A folder with data was usable before, and must be kept.
	if err := os.Remove(wished); err != nil {
		return "", fmt.Errorf("the user with id %d cannot enter %s, and it is not empty: %w", o.uid, wished, err)
	}
	return other, os.Symlink(other, wished)
}

// acquire locks the folder for this process. The lock ends with the process, even if the process is killed. The error
// wraps [ErrInUse] if another server has the lock.
func (f *folder) acquire() error {
	lock, err := os.OpenFile(filepath.Join(f.root, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if f.owner.switched {
		if err := lock.Chown(int(f.owner.uid), int(f.owner.gid)); err != nil {
			lock.Close()
			return err
		}
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return fmt.Errorf("%w: %s", ErrInUse, f.root)
	}
	f.lock = lock
	return nil
}

// release ends the lock of the folder. A child process that is being started has a copy of the open file until it runs
// its program. So closing the file alone would keep the lock for a moment (flock(2)).
func (f *folder) release() {
	if f.lock != nil {
		_ = syscall.Flock(int(f.lock.Fd()), syscall.LOCK_UN)
		f.lock.Close()
		f.lock = nil
	}
}

// Remove deletes the folder of a stopped server with all its data, including a folder in /var/tmp. The error wraps
// [ErrInUse] if the folder is in use. Remove ignores a missing folder.
func Remove(dir string) error {
	wished, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(wished); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f, err := openFolder(wished)
	if err != nil {
		return err
	}
	defer f.release()
	if pid := f.runningPID(); pid != 0 {
		return fmt.Errorf("%w: process %d in %s", ErrInUse, pid, f.root)
	}
	err = os.RemoveAll(f.root)
	if f.socket != f.root {
		err = errors.Join(err, os.RemoveAll(f.socket))
	}
	if info, lerr := os.Lstat(wished); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = errors.Join(err, os.Remove(wished))
	}
	return err
}
