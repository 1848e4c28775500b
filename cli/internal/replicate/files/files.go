// Package files keeps a copy of a project as Parquet files in a folder or a bucket. Files never change. The file
// manifest.json names all files of the copy and holds its position; it is replaced after the files of a batch are
// written, whole or not at all. Files that it does not name are no part of the copy.
package files

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/replicate"
)

// layout is the version of the manifest and of the columns of the files.
const layout = 1

const manifestName = "manifest.json"

// manifest is what manifest.json holds.
type manifest struct {
	Layout int `json:"layout"`
	replicate.Source
	replicate.Position
	// Writer is the process that may replace the manifest.
	Writer    string    `json:"writer"`
	ChangedAt time.Time `json:"changed_at"`
	Entries   []file    `json:"entries"`
	Events    []file    `json:"events"`
}

// file is a file of the copy.
type file struct {
	Path  string `json:"path"` // relative to the manifest
	Rows  int    `json:"rows"`
	Bytes int    `json:"bytes"`
}

// errChanged is in the chain of the error of [place.replace] when the file is not the expected one.
var errChanged = errors.New("the file has changed")

// place is where files are.
type place interface {
	fmt.Stringer
	// lock takes the place for this process until unlock, as far as the place knows locks.
	lock() error
	unlock() error
	// list names all files, relative to the place.
	list(ctx context.Context) ([]string, error)
	// read returns a file and its version. Without the file, the error has fs.ErrNotExist in its chain.
	read(ctx context.Context, name string) (data []byte, version string, err error)
	// write creates a file, whole or not at all.
	write(ctx context.Context, name string, data []byte) error
	// replace replaces the file of that version, "" for none, whole or not at all, and returns the new version.
	replace(ctx context.Context, name string, data []byte, version string) (string, error)
	remove(ctx context.Context, name string) error
}

// Options say what a copy is of.
type Options struct {
	Source replicate.Source
	// Moved accepts a copy that was made from another URL of the same project.
	Moved bool
}

// Destination is a copy. It is a [replicate.Destination].
type Destination struct {
	Options
	place
	manifest manifest
	version  string // of the manifest
}

// Folder returns the copy in a folder of this machine, which is created if it is missing.
func Folder(path string, o Options) *Destination {
	return &Destination{Options: o, place: &folder{path: path}}
}

// Limits returns what one file takes. Changes wait for others, so that a copy that follows the feed does not consist
// of very small files.
func (*Destination) Limits() replicate.Limits {
	return replicate.Limits{Changes: 50_000, Bytes: 6 << 20, Linger: time.Minute}
}

// Open takes the copy, creates it if it is missing, checks that it is one of the source, and removes files that the
// manifest does not name.
func (d *Destination) Open(ctx context.Context) (at replicate.Position, err error) {
	if err := d.lock(); err != nil {
		return at, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.unlock())
		}
	}()
	names, err := d.load(ctx)
	if err != nil {
		return at, err
	}
	// The new writer makes a commit of a process that had the copy before fail, also where there are no locks. Only
	// then are that process's files removed.
	d.manifest.Writer = random()
	if err := d.commit(ctx, d.manifest); err != nil {
		return at, err
	}
	if err := d.clean(ctx, names); err != nil {
		return at, err
	}
	return d.manifest.Position, nil
}

// load reads the manifest and checks it, or makes one for a place without files. It returns the names of the files,
// listed after the manifest was read.
func (d *Destination) load(ctx context.Context) (names []string, err error) {
	data, version, err := d.read(ctx, manifestName)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	if names, err = d.list(ctx); err != nil {
		return nil, err
	}
	if !missing {
		d.version = version
		return names, d.check(data, names)
	}
	for _, name := range names {
		if !unfinished.MatchString(name) {
			return nil, fmt.Errorf("%s has files (%s) and no %s, so it is no copy of lectern sync: give an empty place", d, name, manifestName)
		}
	}
	d.manifest, d.version = manifest{Layout: layout, Source: d.Source, Entries: []file{}, Events: []file{}}, ""
	return names, nil
}

// check takes the manifest that data holds, if it is of this source and its files are there.
func (d *Destination) check(data []byte, names []string) error {
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%s of %s is not one of lectern sync (%w): give an empty place", manifestName, d, err)
	}
	switch {
	case m.Layout != layout:
		return fmt.Errorf("%s has a copy of layout %d; this version of lectern writes layout %d: use the version that made it, or give an empty place", d, m.Layout, layout)
	case m.ProjectID != d.Source.ProjectID:
		return fmt.Errorf("%s has a copy of project %q, not of %q: give another place", d, m.ProjectID, d.Source.ProjectID)
	case m.URL != d.Source.URL && !d.Moved:
		return fmt.Errorf("%s has a copy of the project at %s, not at %s: if this is the same deployment at a new address, give --moved; else another place", d, m.URL, d.Source.URL)
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	for _, f := range append(append([]file(nil), m.Entries...), m.Events...) {
		if !there[f.Path] {
			return fmt.Errorf("%s lacks the file %s, which its %s names: restore it, or make a new copy in an empty place", d, f.Path, manifestName)
		}
	}
	m.Source = d.Source
	d.manifest = m
	return nil
}

var (
	// ownName matches the names that this package gives to files of rows.
	ownName = regexp.MustCompile(`^(entries|events)/[0-9]{20}-[0-9a-f]{16}\.parquet$`)
	// unfinished matches the names of files that a process was writing in a folder when it ended.
	unfinished = regexp.MustCompile(`^(entries/|events/)?\.(manifest\.json|[0-9]{20}-[0-9a-f]{16}\.parquet)\.[0-9]+$`)
)

// clean removes files of processes that ended before they could name them.
func (d *Destination) clean(ctx context.Context, names []string) error {
	named := map[string]bool{}
	for _, f := range append(append([]file(nil), d.manifest.Entries...), d.manifest.Events...) {
		named[f.Path] = true
	}
	for _, name := range names {
		if unfinished.MatchString(name) || ownName.MatchString(name) && !named[name] {
			if err := d.remove(ctx, name); err != nil {
				return fmt.Errorf("remove %s, which is no part of the copy: %w", name, err)
			}
		}
	}
	return nil
}

// Apply writes the files of a batch, and then the manifest that names them. A new copy gets a file of each kind, also
// an empty one, so that its readers find columns.
func (d *Destination) Apply(ctx context.Context, b *replicate.Batch) error {
	entries, events := rowsOf(b.Changes)
	next := d.manifest
	next.Position = b.Position
	var err error
	if next.Entries, err = add(ctx, d, "entries", next.Entries, entries, b.Position.Seq); err != nil {
		return err
	}
	if next.Events, err = add(ctx, d, "events", next.Events, events, b.Position.Seq); err != nil {
		return err
	}
	if next.Position == d.manifest.Position && len(next.Entries) == len(d.manifest.Entries) {
		return nil
	}
	return d.commit(ctx, next)
}

// add writes rows to a new file of a kind, and returns files with it.
func add[T any](ctx context.Context, d *Destination, kind string, files []file, rows []T, seq int64) ([]file, error) {
	if len(rows) == 0 && len(files) > 0 {
		return files, nil
	}
	data, err := encode(rows)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	name := fmt.Sprintf("%s/%020d-%s.parquet", kind, seq, random())
	if err := d.write(ctx, name, data); err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return append(files[:len(files):len(files)], file{Path: name, Rows: len(rows), Bytes: len(data)}), nil
}

// commit replaces the manifest.
func (d *Destination) commit(ctx context.Context, m manifest) error {
	m.ChangedAt = time.Now().UTC().Truncate(time.Second)
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	version, err := d.replace(ctx, manifestName, append(data, '\n'), d.version)
	if errors.Is(err, errChanged) {
		return fmt.Errorf("another sync writes to %s: run one at a time", d)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", manifestName, err)
	}
	d.manifest, d.version = m, version
	return nil
}

// Close releases the copy.
func (d *Destination) Close() error { return d.unlock() }

func random() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}
