package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"runtime"
	"strings"

	"github.com/lectern-dev/lectern/copies/durable"
)

// part is the file to which pages are appended until the export is complete. The file is FILE.part, or has no name on
// the way to a stream. The file contains data of users, so part creates the file for its owner alone.
type part struct {
	file *os.File
	at   mark // after the last settled page

	path  string // of the complete file; "" for a stream
	query Query
	lock  *durable.Lock

	stream io.Writer
	hold   bool // the file keeps all pages for a conversion, so that no page goes to the stream
}

// mark is the position up to which an export is settled: the cursor of the next page, and the records and bytes so
// far. Done reports whether the list is complete.
type mark struct {
	Cursor  string `json:"cursor"`
	Records int    `json:"records"`
	Bytes   int64  `json:"bytes"`
	Done    bool   `json:"done,omitempty"`
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
	p := &part{file: f, lock: lock, path: path, query: query}
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
	return p, p.rewind()
}

// newStream returns a part that writes to stream: each page when the page is settled, or all at the end if hold is set.
// The file disappears with the process, but on Windows, which cannot remove an open file, close removes the file.
func newStream(stream io.Writer, hold bool) (*part, error) {
	f, err := os.CreateTemp("", "lectern-export-*")
	if err == nil {
		_ = os.Remove(f.Name())
	}
	return &part{file: f, stream: stream, hold: hold}, err
}

// rewind discards all that was written to the file since the last settled page.
func (p *part) rewind() error {
	end := p.at.Bytes
	if p.path == "" && !p.hold { // the stream has the pages before
		end = 0
	}
	if err := p.file.Truncate(end); err != nil {
		return err
	}
	_, err := p.file.Seek(end, io.SeekStart)
	return err
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

// settle keeps the page that was written to the file, and makes at the mark after the page. For a FILE.part, settle
// syncs the bytes to disk and then writes at to FILE.part.json, so that the mark never exceeds the bytes on disk.
func (p *part) settle(at mark) error {
	if p.path == "" && !p.hold {
		if _, err := p.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(p.stream, p.file); err != nil {
			return err
		}
	}
	if p.path != "" {
		if err := p.file.Sync(); err != nil {
			return err
		}
		if err := durable.WriteJSON(statePath(p.path), progress{p.query, at}); err != nil {
			return err
		}
	}
	p.at = at
	return nil
}

// finish publishes the complete export. If convert is not nil, finish first converts the settled records.
func (p *part) finish(convert func(records io.ReadSeeker, to io.Writer) error) error {
	records, from := io.NewSectionReader(p.file, 0, p.at.Bytes), ""
	switch {
	case p.path == "" && convert == nil:
		return nil
	case p.path == "":
		return convert(records, p.stream)
	case convert == nil:
		from = partPath(p.path)
	default:
		from = convertedPath(p.path)
		if err := create(from, func(to io.Writer) error { return convert(records, to) }); err != nil {
			return errors.Join(err, durable.RemoveIfThere(from))
		}
	}
	if err := p.file.Close(); err != nil { // Windows cannot rename or remove an open file
		return err
	}
	if err := durable.Rename(from, p.path); err != nil {
		return err
	}
	if err := os.Remove(statePath(p.path)); err != nil {
		return err
	}
	return durable.RemoveIfThere(partPath(p.path))
}

// create creates a file for its owner alone, and fills the file by write. When create returns nil, the content is on
// disk.
func create(path string, write func(io.Writer) error) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := write(f); err != nil {
		return err
	}
	return f.Sync()
}

// close releases the part's resources. The settled pages of a FILE.part stay for the next run.
func (p *part) close() error {
	err := p.file.Close()
	if errors.Is(err, os.ErrClosed) { // by finish
		err = nil
	}
	if p.path != "" {
		return errors.Join(err, p.lock.Release())
	}
	if runtime.GOOS == "windows" {
		err = errors.Join(err, os.Remove(p.file.Name()))
	}
	return err
}
