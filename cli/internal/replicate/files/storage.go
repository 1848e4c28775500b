package files

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// errChanged is in the chain of the error of [storage.replace] if the file has another version.
var errChanged = errors.New("the file has changed")

// object is a file of a storage, or an earlier version of one.
type object struct {
	name    string // relative to the storage
	version string // of a bucket
	past    bool   // another version has replaced it, or it was removed
}

// part is an open file.
type part interface {
	io.ReaderAt
	io.Closer
}

// storage is a folder or a bucket that holds files.
type storage interface {
	fmt.Stringer
	// lock locks the storage for this process until unlock. A storage without locks checks that replace refuses another version.
	lock(ctx context.Context) error
	unlock() error
	// list returns all files, with all versions that a bucket keeps.
	list(ctx context.Context) ([]object, error)
	// read returns a file and its version. Without the file, the error has fs.ErrNotExist in its chain.
	read(ctx context.Context, name string) (data []byte, version string, err error)
	// open opens a file to read parts of it. Without the file, open or the first read fails.
	open(ctx context.Context, name string) (part, error)
	// write creates a file, whole or not at all.
	write(ctx context.Context, name string, data []byte) error
	// replace replaces the file of that version, "" for none, whole or not at all, and returns the new version.
	replace(ctx context.Context, name string, data []byte, version string) (string, error)
	// remove removes one version of a file for good, if it is there.
	remove(ctx context.Context, o object) error
}
