// Package durable writes files atomically: after a crash at any time, a file has its old content or the complete new
// content. The package also locks files against other processes.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gofrs/flock"
)

// WriteJSON writes value to the file at path as indented JSON, as [WriteFile] does.
func WriteJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, append(data, '\n'))
}

// WriteFile writes data to a temporary file and renames it to path, so that the file at path is replaced at once. Only the
// owner may read the file. When WriteFile returns nil, the data is on disk, except that Windows may write the name later.
func WriteFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // its mode is 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
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

// Rename renames the file at oldPath to newPath, which must be in the same folder. When Rename returns nil, the new name
// is on disk, except on Windows.
func Rename(oldPath, newPath string) error {
	if err := os.Rename(oldPath, newPath); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(newPath))
}

// RemoveIfThere removes the file at path. A missing file is not an error.
func RemoveIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// MkdirAll makes the folder at path and its parents, where they are missing. When MkdirAll returns nil, the new folders
// are on disk, except on Windows. Only the owner may enter the new folders. A file at path is not an error.
func MkdirAll(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	// Another goroutine may make the folder meanwhile.
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder writes the entries of the folder at path, such as new names, to disk. On Windows, syncFolder does
// nothing: Windows cannot sync a folder, and writes it soon after.
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

// ErrLocked is the error of [Acquire] if the lock is held, usually by another process.
var ErrLocked = errors.New("another process holds it")

// Lock is a file that this process has locked against other processes. On Windows, no other process can read or write
// the file.
type Lock struct{ file *flock.Flock }

// Acquire creates the file at path if it is missing, and locks the file until [Lock.Release] or the end of the process.
// Acquire does not wait: if the lock is held, the error is [ErrLocked].
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
		// The process that held the lock has removed the file meanwhile, so this process has locked a file without a
		// name.
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err := errors.Join(err, l.file.Close()); err != nil {
			return nil, err
		}
	}
}

// Release removes the file and unlocks it, so that another process can acquire the lock.
func (l *Lock) Release() error {
	if runtime.GOOS == "windows" { // Windows cannot remove an open file, not even one that the next holder has opened
		err := l.file.Close()
		_ = os.Remove(l.file.Path())
		return err
	}
	_ = os.Remove(l.file.Path()) // a file that remains does not keep other processes from locking it
	return l.file.Close()
}
