package files

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// errChanged is in the chain of the error of [storage.replace] if another process has replaced the file.
var errChanged = errors.New("the file has changed")

// object is a file of a storage. In a bucket with versions, an object may also be an earlier version of a file.
type object struct {
	name    string // relative to the storage
	version string // the version's id in a bucket; empty in a folder
	past    bool   // a later version has replaced this version, or the file was removed
}

// part is a file that is open for reads at any position. The caller closes the part.
type part interface {
	io.ReaderAt
	io.Closer
}

// storage holds the files of a copy: [folder] on this machine, or [bucket] in an S3 store.
type storage interface {
	fmt.Stringer
	// lock locks the storage for this process until unlock. A storage without locks instead checks that replace
	// refuses a changed file.
	lock(ctx context.Context) error
	unlock() error
	// list returns all files, with all versions that a bucket keeps.
	list(ctx context.Context) ([]object, error)
	// read returns the content of a file and its version. If the file does not exist, the error has fs.ErrNotExist in
	// its chain.
	read(ctx context.Context, name string) (data []byte, version string, err error)
	// open opens a file to read parts of it. If the file does not exist, open or the first read fails.
	open(ctx context.Context, name string) (part, error)
	// write creates or replaces a file. After a crash, the file has all of data, or is as before.
	write(ctx context.Context, name string, data []byte) error
	// replace replaces the file's content and returns the new version. version is the version to replace; "" if the
	// file must not exist. A bucket returns errChanged if the file has another version. After a crash, the file has
	// the old or the new content.
	replace(ctx context.Context, name string, data []byte, version string) (string, error)
	// remove removes one version of a file permanently. A missing file is not an error.
	remove(ctx context.Context, o object) error
}
