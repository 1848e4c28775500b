package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lectern-dev/lectern/copies/durable"
)

// lockName is the name of the file that a process locks while it has the copy open.
const lockName = ".lock"

// folder is the storage of a copy in a folder of this machine. Only the owner may read the files, because the copy has
// personal data.
type folder struct {
	path string
	held *durable.Lock
}

// String returns the path of the folder for messages, as in "folder /path".
func (f *folder) String() string { return "folder " + f.path }

func (f *folder) lock(context.Context) error {
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return err
	}
	held, err := durable.Acquire(filepath.Join(f.path, lockName))
	if errors.Is(err, durable.ErrLocked) {
		return fmt.Errorf("another sync writes to %s: stop it, or name another folder", f)
	}
	f.held = held
	return err
}

func (f *folder) unlock() error { return f.held.Release() }

func (f *folder) list(ctx context.Context) (objects []object, err error) {
	err = fs.WalkDir(os.DirFS(f.path), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path != lockName {
			objects = append(objects, object{name: path})
		}
		return errors.Join(err, ctx.Err())
	})
	return objects, err
}

// read returns the content of the file name. The version is always empty: the lock keeps other processes from changing
// the file.
func (f *folder) read(_ context.Context, name string) ([]byte, string, error) {
	data, err := os.ReadFile(filepath.Join(f.path, name))
	return data, "", err
}

func (f *folder) open(_ context.Context, name string) (part, error) {
	return os.Open(filepath.Join(f.path, name))
}

func (f *folder) write(_ context.Context, name string, data []byte) error {
	path := filepath.Join(f.path, name)
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return durable.WriteFile(path, data)
}

func (f *folder) replace(ctx context.Context, name string, data []byte, _ string) (string, error) {
	return "", f.write(ctx, name, data)
}

func (f *folder) remove(_ context.Context, o object) error {
	err := os.Remove(filepath.Join(f.path, o.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
