// Package files keeps a copy of a project as Parquet files in a folder or a bucket. Files never change. The file
// manifest.json names all files of the copy and holds its position. It is replaced atomically after the files of a batch
// are written. Files that it does not name do not belong to the copy.
package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/cli/internal/parquetfile"
	"github.com/lectern-dev/lectern/cli/internal/replicate"
)

// layout is the version of the manifest and of the columns of the files.
const layout = 1

const manifestName = "manifest.json"

// manifest is the content of manifest.json.
type manifest struct {
	Layout int `json:"layout"`
	replicate.Source
	replicate.Position
	// Writer is the process that may replace the manifest.
	Writer    string    `json:"writer"`
	ChangedAt time.Time `json:"changed_at"`
	// Columns names the choice of columns, and ColumnList the columns of entry_data.
	Columns    string           `json:"columns"`
	ColumnList []columns.Column `json:"column_list"`
	Entries    []file           `json:"entries"`
	Events     []file           `json:"events"`
}

// file is a file of the copy.
type file struct {
	Path  string `json:"path"` // relative to the manifest
	Rows  int    `json:"rows"`
	Bytes int    `json:"bytes"`
	// Columns is how many columns of entry_data the file has: the first ones of the manifest's list.
	Columns int `json:"columns,omitempty"`
}

// errChanged is in the chain of the error of [storage.replace] if the file has another version.
var errChanged = errors.New("the file has changed")

// storage is a folder or a bucket that holds files.
type storage interface {
	fmt.Stringer
	// lock locks the storage for this process until unlock, if the storage has locks.
	lock() error
	unlock() error
	// list returns the names of all files, relative to the storage.
	list(ctx context.Context) ([]string, error)
	// read returns a file and its version. Without the file, the error has fs.ErrNotExist in its chain.
	read(ctx context.Context, name string) (data []byte, version string, err error)
	// write creates a file, whole or not at all.
	write(ctx context.Context, name string, data []byte) error
	// replace replaces the file of that version, "" for none, whole or not at all, and returns the new version.
	replace(ctx context.Context, name string, data []byte, version string) (string, error)
	// remove removes a file, if it is there.
	remove(ctx context.Context, name string) error
}

// Options configure a copy.
type Options struct {
	Source replicate.Source
	// Moved accepts a copy that was made from another URL of the same project.
	Moved bool
	// Columns selects the keys of entry_data that become columns.
	Columns columns.Choice
}

// Destination is a copy. It is a [replicate.Destination].
type Destination struct {
	Options
	storage
	manifest manifest
	version  string       // of the manifest
	set      *columns.Set // of the manifest's ColumnList
	replaced []replaced
}

// replaced is a file that the manifest no longer names, and the time when it was replaced.
type replaced struct {
	name  string
	since time.Time
}

// Folder returns the copy in a folder of this machine, which is created if it is missing.
func Folder(path string, o Options) *Destination {
	return &Destination{Options: o, storage: &folder{path: path}}
}

// Limits returns the bounds of one file. Changes wait for others, so that a copy that follows the feed does not consist
// of very small files.
func (*Destination) Limits() replicate.Limits {
	return replicate.Limits{Changes: 50_000, Bytes: 4 << 20, Linger: time.Minute}
}

// Open locks the copy, creates it if it is missing, and checks that it is a copy of the source. It removes files that the
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
	d.replaced = nil
	return d.manifest.Position, nil
}

// load reads and checks the manifest, or makes one for an empty storage. It returns the names of the files, which it lists
// after it has read the manifest.
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
	d.set = d.Columns.Set()
	d.manifest, d.version = manifest{
		Layout: layout, Source: d.Source, Columns: d.Columns.String(), ColumnList: d.set.Columns(), Entries: []file{}, Events: []file{},
	}, ""
	return names, nil
}

// check uses the manifest in data, if it has this source and its files exist.
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
	case m.Columns != d.Columns.String():
		return fmt.Errorf("%s has a copy with --columns %s, not %s: give --columns as before, or an empty place for a new copy", d, m.Columns, d.Columns)
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	for name := range m.files() {
		if !there[name] {
			return fmt.Errorf("%s lacks the file %s, which its %s names: restore it, or make a new copy in an empty place", d, name, manifestName)
		}
	}
	m.Source = d.Source
	d.manifest, d.set = m, d.Columns.Restore(m.ColumnList)
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
	named := d.manifest.files()
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
	set := d.set.Clone()
	for i := range entries {
		if data := entries[i].EntryData; data != nil {
			set.Observe(*data)
		}
	}
	next := d.manifest
	next.Position, next.ColumnList = b.Position, set.Columns()
	var err error
	if next.Entries, err = add(ctx, d, "entries", next.Entries, entries, set, b.Current); err != nil {
		return err
	}
	if next.Events, err = add(ctx, d, "events", next.Events, events, columns.Choice{}.Set(), b.Current); err != nil {
		return err
	}
	if next.Position == d.manifest.Position && len(next.Entries) == len(d.manifest.Entries) {
		return nil
	}
	before := d.manifest
	if err := d.commit(ctx, next); err != nil {
		return err
	}
	d.set = set
	return d.forget(ctx, before)
}

// Files up to these sizes are merged with the next batch. Otherwise a copy that follows the feed would consist of many
// small files.
const (
	smallRows  = 25_000
	smallBytes = 512 << 10
)

// add writes rows to a file of a kind, and returns files with it. If the copy is current, a small file at the end is
// replaced by one that has its rows too.
func add[T row](ctx context.Context, d *Destination, kind string, files []file, rows []T, set *columns.Set, current bool) ([]file, error) {
	if len(rows) == 0 && len(files) > 0 {
		return files, nil
	}
	keep := len(files)
	if keep > 0 && current && files[keep-1].Rows <= smallRows && files[keep-1].Bytes <= smallBytes {
		keep--
	}
	f, err := write(ctx, d, kind, files[keep:], rows, set)
	if err != nil {
		return nil, err
	}
	return append(files[:keep:keep], f), nil
}

// write makes a file of the rows of other files, and of further rows.
func write[T row](ctx context.Context, d *Destination, kind string, from []file, rows []T, set *columns.Set) (file, error) {
	var b bytes.Buffer
	made, last := file{Columns: len(set.Columns())}, int64(0)
	w := parquetfile.NewWriter(&b, set, func(r *T) *string { return (*r).data() })
	put := func(rows []T) error {
		if len(rows) > 0 {
			made.Rows, last = made.Rows+len(rows), rows[len(rows)-1].seq()
		}
		return w.Write(rows)
	}
	for _, f := range from {
		if err := eachRows(ctx, d, f, put); err != nil {
			return made, err
		}
	}
	if err := put(rows); err != nil {
		return made, err
	}
	if err := w.Close(); err != nil {
		return made, err
	}
	made.Path, made.Bytes = fmt.Sprintf("%s/%020d-%s.parquet", kind, last, random()), b.Len()
	if err := d.write(ctx, made.Path, b.Bytes()); err != nil {
		return made, fmt.Errorf("write %s: %w", made.Path, err)
	}
	return made, nil
}

// eachRows calls do with the rows of a file of the copy, some at a time.
func eachRows[T row](ctx context.Context, d *Destination, f file, do func([]T) error) error {
	data, _, err := d.read(ctx, f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s lacks the file %s, which its %s names: restore it, or make a new copy in an empty place", d, f.Path, manifestName)
	}
	if err != nil {
		return err
	}
	for rows, err := range parquetfile.Rows[T](bytes.NewReader(data)) {
		if err == nil {
			err = do(rows)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return nil
}

// keepReplaced is how long files stay that the manifest no longer names, for readers that have read it before.
const keepReplaced = time.Hour

// forget removes files that were replaced long ago, and notes those that before names and the manifest does not.
func (d *Destination) forget(ctx context.Context, before manifest) error {
	now := time.Now()
	for len(d.replaced) > 0 && now.Sub(d.replaced[0].since) > keepReplaced {
		if err := d.remove(ctx, d.replaced[0].name); err != nil {
			return fmt.Errorf("remove %s, which was replaced: %w", d.replaced[0].name, err)
		}
		d.replaced = d.replaced[1:]
	}
	named := d.manifest.files()
	for name := range before.files() {
		if !named[name] {
			d.replaced = append(d.replaced, replaced{name, now})
		}
	}
	return nil
}

// files returns the paths of the files.
func (m *manifest) files() map[string]bool {
	named := map[string]bool{}
	for _, list := range [][]file{m.Entries, m.Events} {
		for _, f := range list {
			named[f.Path] = true
		}
	}
	return named
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

// Full reports whether a key that this run met has no column, because there are [columns.Most].
func (d *Destination) Full() bool { return d.set != nil && d.set.Full() }

// Close releases the copy.
func (d *Destination) Close() error { return d.unlock() }

func random() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}
