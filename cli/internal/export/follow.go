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

	"github.com/lectern-dev/lectern/cli/internal/durable"
	"github.com/lectern-dev/lectern/client"
)

// Feed identifies a change feed. A cursor is valid for one feed.
type Feed struct {
	URL       string `json:"url"`
	ProjectID string `json:"project_id"`
	Types     string `json:"types"`
}

// FollowOptions configure a follower.
type FollowOptions struct {
	Feed Feed
	// Fetch reads the page after a cursor.
	Fetch func(ctx context.Context, cursor string, receive func(client.RawPage) error) error
	// Stream takes the changes, one a line. If it is a regular file, a page is on disk before its cursor is.
	Stream io.Writer
	// CursorFile keeps the cursor; empty: the feed starts at the beginning.
	CursorFile string
	// Endless waits for further changes instead of ending.
	Endless bool
}

// Followed counts what a follower has written.
type Followed struct {
	Changes int
	LastSeq int64 // the number of the project's newest change
}

// follower is a feed that is written.
type follower struct {
	FollowOptions
	at    position
	spool *spool
	file  *os.File // the stream, if it is a regular file
}

// position is the content of a cursor file.
type position struct {
	Feed
	Cursor string `json:"cursor"`
	// Size is how long the output was with everything before the cursor, if it is a regular file.
	Size int64 `json:"size,omitempty"`
}

// Follow writes a change feed. It writes each complete page, and then the cursor file. After a kill at any moment, the
// next run repeats the last page and omits nothing. If the output ends within a line, the next run ends that line first.
func Follow(ctx context.Context, o FollowOptions) (done Followed, err error) {
	f := &follower{FollowOptions: o, at: position{Feed: o.Feed}}
	if o.CursorFile != "" {
		lock, err := durable.Acquire(o.CursorFile + ".lock")
		if errors.Is(err, durable.ErrLocked) {
			return done, fmt.Errorf("another process follows with %s: give each a file of its own", o.CursorFile)
		}
		if err != nil {
			return done, err
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
	if f.spool, err = newSpool(o.Stream); err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, f.spool.close()) }()
	for {
		current, err := f.page(ctx, &done)
		if err != nil || current && !o.Endless {
			return done, err
		}
	}
}

// readCursor reads the position at which an earlier run ended.
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

// regularFile returns w if it is a regular file, and nil otherwise.
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

// endLine ends the line in which a killed run may have left the output.
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
	// The output has no end of a line, or the follower may not read it. An empty line harms less than two changes in one line.
	_, err = f.Stream.Write([]byte("\n"))
	return err
}

// lastByte returns the last byte of a file of this size. A shell opens an output only for writing, so lastByte opens the
// file again by its name, which is /dev/stdout for the standard output.
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

// page writes the page after f.at, and reports whether it is the last one now.
func (f *follower) page(ctx context.Context, done *Followed) (current bool, err error) {
	next, changes := f.at, 0
	err = f.Fetch(ctx, f.at.Cursor, func(raw client.RawPage) error {
		// It is called again if the transfer broke off, and then discards the part of the page that it has.
		w, err := f.spool.rewind()
		if err != nil {
			return err
		}
		lines := &lineCounter{Writer: w}
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
		if err := f.spool.settle(mark{}); err != nil {
			return false, err
		}
		done.Changes += changes
	}
	return current, f.keep(next)
}

// keep writes the cursor file, after the output is on disk.
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
	if next == f.at || f.CursorFile == "" {
		f.at = next
		return nil
	}
	b, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	f.at = next
	return durable.WriteFile(f.CursorFile, append(b, '\n'), 0o600)
}

// lineCounter counts lines.
type lineCounter struct {
	io.Writer
	n int
}

func (l *lineCounter) Write(p []byte) (int, error) {
	n, err := l.Writer.Write(p)
	l.n += bytes.Count(p[:n], []byte{'\n'})
	return n, err
}
