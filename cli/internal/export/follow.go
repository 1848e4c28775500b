package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/durable"
)

// Feed identifies a change feed. A cursor is valid only for the feed that returned the cursor.
type Feed struct {
	URL       string `json:"url"`
	ProjectID string `json:"project_id"`
	Types     string `json:"types"`
}

// FollowOptions are the settings of one call of [Follow]: the feed, the function that reads pages, and the
// destination.
type FollowOptions struct {
	Feed Feed
	// Fetch reads the page of the feed after cursor; "" is the beginning of the feed. Fetch calls receive again if a
	// transfer broke off.
	Fetch func(ctx context.Context, cursor string, receive func(client.RawPage) error) error
	// Stream gets the changes, one a line. If Stream is a regular file, a page is on disk before its cursor is.
	Stream io.Writer
	// CursorFile is the path of the file that keeps the cursor between runs. If CursorFile is empty, each run starts
	// at the beginning of the feed.
	CursorFile string
	// Endless makes Follow continue with the changes that come after the newest one, instead of returning.
	Endless bool
}

// Followed is the result of one call of [Follow]. Changes is the number of written changes.
type Followed struct {
	Changes int
	LastSeq int64 // the number of the project's newest change at the last answer
}

// follower is the state of one call of [Follow]: its options, the position in the feed, and the output.
type follower struct {
	FollowOptions
	at   position
	page *part
	file *os.File // the stream, if it is a regular file
}

// position is the content of a cursor file: the feed, the cursor after the last written page, and the output's
// length.
type position struct {
	Feed
	Cursor string `json:"cursor"`
	// Size is the length of the output with all changes before Cursor, in bytes. Size is 0 if the output is not a
	// regular file.
	Size int64 `json:"size,omitempty"`
}

// Follow writes a change feed to o.Stream: each complete page, and then the cursor file if o has one. After a kill, the
// next run with the cursor file omits no change, and repeats at most the last page. If a regular file then ends within
// a line, the next run ends that line first.
func Follow(ctx context.Context, o FollowOptions) (done Followed, err error) {
	f := &follower{FollowOptions: o, at: position{Feed: o.Feed}}
	if o.CursorFile != "" {
		lock, fault := durable.Acquire(o.CursorFile + ".lock")
		if errors.Is(fault, durable.ErrLocked) {
			return done, fmt.Errorf("another process follows with %s: give each a file of its own", o.CursorFile)
		}
		if fault != nil {
			return done, fault
		}
		defer func() { err = errors.Join(err, lock.Release()) }()
		if err := f.readCursor(); err != nil {
			return done, err
		}
	}
	if f.file, err = regularFile(o.Stream); err != nil {
		return done, err
	}
	if o.CursorFile != "" {
		if err := f.endLine(); err != nil {
			return done, err
		}
	}
	if f.page, err = newStream(o.Stream, false); err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, f.page.close()) }()
	for {
		current, err := f.next(ctx, &done)
		if err != nil || current && !o.Endless {
			return done, err
		}
	}
}

// readCursor reads the position at which an earlier run ended. A missing file means the beginning of the feed. The
// file of another feed is an error.
func (f *follower) readCursor() error {
	b, err := os.ReadFile(f.CursorFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var found position
	if err := json.Unmarshal(b, &found); err != nil || found.Cursor == "" {
		return fmt.Errorf("%s is no cursor file: name another one", f.CursorFile)
	}
	if differs := difference(found.Feed, f.Feed); differs != "" {
		return fmt.Errorf("%s is of another feed (%s): name another file", f.CursorFile, differs)
	}
	f.at = found
	return nil
}

// regularFile returns w as a file if w is a regular file, and nil for any other writer.
func regularFile(w io.Writer) (*os.File, error) {
	file, ok := w.(*os.File)
	if !ok {
		return nil, nil
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	return file, nil
}

// endLine writes a line break if a killed run may have left an incomplete line at the end of the output.
func (f *follower) endLine() error {
	if f.file == nil {
		return nil
	}
	size, err := f.size()
	if err != nil || size == 0 || size == f.at.Size {
		return err
	}
	if last, err := lastByte(f.file, size); err == nil && last == '\n' {
		return nil
	}
	// The output does not end with a line break, or the follower may not read the output. An empty line harms less than
	// two changes in one line.
	_, err = f.Stream.Write([]byte("\n"))
	return err
}

// lastByte returns the last byte of file, which has size bytes. A shell opens an output only for writing, so lastByte
// opens the file again by its name, which is /dev/stdout for the standard output.
func lastByte(file *os.File, size int64) (byte, error) {
	again, err := os.Open(file.Name())
	if err != nil {
		return 0, err
	}
	defer again.Close()
	is, err := file.Stat()
	if err != nil {
		return 0, err
	}
	found, err := again.Stat()
	if err != nil {
		return 0, err
	}
	if !os.SameFile(is, found) {
		return 0, fmt.Errorf("%s is another file now", file.Name())
	}
	var last [1]byte
	_, err = again.ReadAt(last[:], size-1)
	return last[0], err
}

func (f *follower) size() (int64, error) {
	info, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// next writes the page after f.at, moves f.at to the end of the page, and updates done. current reports whether the
// feed has no further change now.
func (f *follower) next(ctx context.Context, done *Followed) (current bool, err error) {
	next, changes := f.at, 0
	err = f.Fetch(ctx, f.at.Cursor, func(raw client.RawPage) error {
		// Fetch calls this function again if the transfer broke off. rewind then discards the incomplete page.
		if err := f.page.rewind(); err != nil {
			return err
		}
		lines := &lineCounter{Writer: f.page.file}
		if _, err := io.Copy(lines, raw.Body); err != nil {
			return err
		}
		next.Cursor, changes, current, done.LastSeq = raw.NextCursor, lines.n, raw.Current, raw.LastSeq
		return nil
	})
	if err != nil {
		return false, err
	}
	if next.Cursor == "" {
		return false, errors.New("the server answers without a cursor: it has no change feed, or something in between drops X-Next-Cursor")
	}
	if changes > 0 {
		if err := f.page.settle(mark{}); err != nil {
			return false, err
		}
		done.Changes += changes
	}
	return current, f.keep(next)
}

// keep makes next the position of the follower. keep first syncs an output that is a regular file, and then writes the
// cursor file if there is one.
func (f *follower) keep(next position) error {
	if f.file != nil {
		if err := f.file.Sync(); err != nil {
			return err
		}
		var err error
		if next.Size, err = f.size(); err != nil {
			return err
		}
	}
	changed := next != f.at
	f.at = next
	if !changed || f.CursorFile == "" {
		return nil
	}
	return durable.WriteJSON(f.CursorFile, next)
}

// lineCounter passes bytes on to its Writer, and counts the line breaks in n.
type lineCounter struct {
	io.Writer
	n int
}

func (l *lineCounter) Write(p []byte) (int, error) {
	n, err := l.Writer.Write(p)
	l.n += bytes.Count(p[:n], []byte{'\n'})
	return n, err
}
