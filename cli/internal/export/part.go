package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"

	"github.com/lectern-dev/lectern/copies/durable"
)

// part is the sink of a file: FILE.part, which grows until the export is complete. The file contains data of users, so
// part creates the file for its owner alone.
type part struct {
	growing
	lock  *durable.Lock
	path  string
	query Query
}

// progress is the content of FILE.part.json: the query of the part, and the mark after its last settled page.
type progress struct {
	Query Query `json:"query"`
	mark
}

func partPath(path string) string  { return path + ".part" }
func lockPath(path string) string  { return path + ".part.lock" }
func statePath(path string) string { return path + ".part.json" }

// convertedPath returns the path of the file to which a complete part is converted, before that file is renamed to
// path.
func convertedPath(path string) string { return path + ".part.out" }

// openPart locks and opens the part of path that an earlier run of query left, or a new part. The part of another query
// is an error, unless restart is set, which discards any earlier part. A lock of another export is an error too.
func openPart(path string, query Query, restart bool) (_ *part, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: leave --out away and redirect instead", path)
	}
	lock, err := durable.Acquire(lockPath(path))
	if errors.Is(err, durable.ErrLocked) {
		return nil, fmt.Errorf("another export is writing %s: wait for it, or name another file", path)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Release()
		}
	}()
	f, err := openOwn(partPath(path))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	// An interrupted conversion begins again.
	if err := durable.RemoveIfThere(convertedPath(path)); err != nil {
		return nil, err
	}
	p := &part{growing: growing{file: f}, lock: lock, path: path, query: query}
	if !restart {
		found, ok, err := readProgress(path)
		if err != nil {
			return nil, err
		}
		if ok {
			if differs := difference(found.Query, query); differs != "" {
				return nil, fmt.Errorf("%s is of another query (%s): repeat that one, name another file, or discard it with --no-resume", partPath(path), differs)
			}
			p.at = found.mark
		}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < p.at.Bytes {
		// Someone removed or truncated the part.
		p.at = mark{}
	}
	if p.at.Bytes == 0 {
		if err := durable.RemoveIfThere(statePath(path)); err != nil {
			return nil, err
		}
	}
	if _, err := p.rewind(); err != nil {
		return nil, err
	}
	return p, nil
}

// openOwn opens a file to read and write, or makes the file. openOwn refuses a symbolic link: another user may have
// made the link, so that the export overwrites another file of this user.
func openOwn(path string) (*os.File, error) {
	refused := fmt.Errorf("%s is a link or no regular file: remove it", path)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, refused
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	opened, err1 := f.Stat()
	named, err2 := os.Lstat(path)
	if err := errors.Join(err1, err2); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !os.SameFile(opened, named) { // a link since the first look
		return nil, errors.Join(refused, f.Close())
	}
	return f, nil
}

func readProgress(path string) (progress, bool, error) {
	var found progress
	b, err := os.ReadFile(statePath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return found, false, nil
	}
	if err != nil {
		return found, false, err
	}
	if err := json.Unmarshal(b, &found); err != nil {
		return found, false, fmt.Errorf("%s is damaged (%w): discard it with --no-resume", statePath(path), err)
	}
	return found, true, nil
}

// difference returns the JSON name of the first field in which two structs differ, with both values. If no field
// differs, difference returns "".
func difference[T any](was, is T) string {
	a, b := reflect.ValueOf(was), reflect.ValueOf(is)
	for i := range a.NumField() {
		if x, y := a.Field(i).Interface(), b.Field(i).Interface(); x != y {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			return fmt.Sprintf("its %s is %q, not %q", name, fmt.Sprint(x), fmt.Sprint(y))
		}
	}
	return ""
}

// settle syncs the bytes of the part to disk, and then writes at to FILE.part.json. In this order, the mark never
// exceeds the bytes on disk.
func (p *part) settle(at mark) error {
	if err := p.file.Sync(); err != nil {
		return err
	}
	b, err := json.MarshalIndent(progress{p.query, at}, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.WriteFile(statePath(p.path), append(b, '\n'), 0o600); err != nil {
		return err
	}
	p.at = at
	return nil
}

func (p *part) finish(convert func(io.ReadSeeker, io.Writer) error) error {
	if convert == nil {
		if err := p.file.Close(); err != nil { // Windows cannot rename or remove an open file
			return err
		}
		if err := durable.Rename(partPath(p.path), p.path); err != nil {
			return err
		}
		return os.Remove(statePath(p.path))
	}
	if err := p.convert(convert); err != nil {
		return errors.Join(err, durable.RemoveIfThere(convertedPath(p.path)))
	}
	if err := durable.Rename(convertedPath(p.path), p.path); err != nil {
		return err
	}
	if err := os.Remove(statePath(p.path)); err != nil {
		return err
	}
	if err := p.file.Close(); err != nil {
		return err
	}
	return os.Remove(partPath(p.path))
}

func (p *part) close() error {
	err := p.file.Close()
	if errors.Is(err, os.ErrClosed) { // by finish
		err = nil
	}
	return errors.Join(err, p.lock.Release())
}

// convert writes the settled records in their final format to a new converted file. If convert returns no error, the
// converted file is on disk.
func (p *part) convert(convert func(io.ReadSeeker, io.Writer) error) (err error) {
	f, err := os.OpenFile(convertedPath(p.path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := convert(p.records(), f); err != nil {
		return err
	}
	return f.Sync()
}
