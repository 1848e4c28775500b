// Package durable writes files atomically: after a crash at any time, a file is complete or missing. It also locks files
// against other processes.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gofrs/flock"
)

// WriteFile replaces the file at path with data by a rename. The data is on disk when it returns.
func WriteFile(path string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return Rename(f.Name(), path)
}

// Rename renames from to to within one folder. The new name is on disk when it returns.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// RemoveIfThere removes a file. A missing file is no error.
func RemoveIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// MkdirAll makes a folder and its parents, where they are missing. They are on disk when it returns.
func MkdirAll(path string, mode fs.FileMode) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := MkdirAll(filepath.Dir(path), mode); err != nil {
		return err
	}
	// Another goroutine may make it meanwhile.
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder does nothing on Windows, which cannot sync a folder and writes it soon after.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// ErrLocked is in the chain of [Acquire]'s error when another process holds the lock.
var ErrLocked = errors.New("another process holds it")

// Lock is a file that this process has locked against other processes. On Windows, nothing else can read or write it.
type Lock struct{ file *flock.Flock }

// Acquire creates the file at path if it is missing, and locks it until [Lock.Release] or the end of the process.
func Acquire(path string) (*Lock, error) {
	for {
		l := &Lock{flock.New(path)}
		held, err := l.file.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !held {
			return nil, ErrLocked
		}
		mine, err := l.file.Stat()
		if err != nil {
			return nil, errors.Join(err, l.file.Close())
		}
		now, err := os.Stat(path)
		if err == nil && os.SameFile(mine, now) {
			return l, nil
		}
		// The process that held the lock has removed the file meanwhile.
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err := errors.Join(err, l.file.Close()); err != nil {
			return nil, err
		}
	}
}

// Release unlocks the file and removes it.
func (l *Lock) Release() error {
	if runtime.GOOS == "windows" { // an open file cannot be removed there, not even that of the next holder
		err := l.file.Close()
		_ = os.Remove(l.file.Path())
		return err
	}
	_ = os.Remove(l.file.Path()) // a file that stays is no lock
	return l.file.Close()
}
