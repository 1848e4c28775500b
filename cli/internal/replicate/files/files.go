// Package files keeps a copy of a project as Parquet files in a folder or a bucket. Files never change. The file
// manifest.json names all files of the copy and holds its position. It is replaced atomically after the files of a batch
// are written. Files that it does not name do not belong to the copy. An erasure replaces the files that have its rows.
package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/cli/internal/parquetfile"
	"github.com/lectern-dev/lectern/cli/internal/replicate"
)

// layout is the version of the manifest and of the columns of the files.
const layout = 2

const manifestName = "manifest.json"

// manifest is the content of manifest.json.
type manifest struct {
	Layout int `json:"layout"`
	replicate.Source
	replicate.Position
	// Writer is the process that may replace the manifest.
	Writer    string    `json:"writer"`
	ChangedAt time.Time `json:"changed_at"`
	// Began is the project's newest number when the copy began. So the copy never had entries that were removed before.
	Began int64 `json:"began"`
	// Rewritten counts the files that erasures have rewritten.
	Rewritten int `json:"files_rewritten"`
	// Columns names the choice of columns of entry_data.
	Columns  string       `json:"columns"`
	Entries  []embeddable `json:"entries"`
	Events   []file       `json:"events"`
	Removals []file       `json:"removals"`
	// These have one file each, and none if the key may not read them.
	Embeddables []file `json:"embeddables"`
	Versions    []file `json:"embeddable_versions"`
	Experiments []file `json:"experiments"`
	History     []file `json:"experiment_history"`
}

// embeddable is the entries of an embeddable. Its files have columns of their own.
type embeddable struct {
	EmbeddableID string           `json:"embeddable_id"`
	Columns      []columns.Column `json:"columns"`
	Files        []file           `json:"files"`
}

// file is a file of the copy. Its rows are in the order of their numbers.
type file struct {
	Path  string `json:"path"` // relative to the manifest
	Rows  int    `json:"rows"`
	Bytes int    `json:"bytes"`
	// FirstSeq and LastSeq are the numbers of the first and the last row; 0 without rows.
	FirstSeq int64 `json:"first_seq"`
	LastSeq  int64 `json:"last_seq"`
}

// errChanged is in the chain of the error of [storage.replace] if the file has another version.
var errChanged = errors.New("the file has changed")

// object is a file of a storage, or an earlier version of one.
type object struct {
	name    string // relative to the storage
	version string // of a bucket
	past    bool   // another version has replaced it, or it was removed
}

// storage is a folder or a bucket that holds files.
type storage interface {
	fmt.Stringer
	// lock locks the storage for this process until unlock, if the storage has locks.
	lock() error
	unlock() error
	// list returns all files, with all versions that a bucket keeps.
	list(ctx context.Context) ([]object, error)
	// read returns a file and its version. Without the file, the error has fs.ErrNotExist in its chain.
	read(ctx context.Context, name string) (data []byte, version string, err error)
	// write creates a file, whole or not at all.
	write(ctx context.Context, name string, data []byte) error
	// replace replaces the file of that version, "" for none, whole or not at all, and returns the new version.
	replace(ctx context.Context, name string, data []byte, version string) (string, error)
	// remove removes one version of a file for good, if it is there.
	remove(ctx context.Context, o object) error
}

// Options configure a copy.
type Options struct {
	Source replicate.Source
	// Moved accepts a copy that was made from another URL of the same project.
	Moved bool
	// Columns selects the keys of entry_data that become columns.
	Columns columns.Choice
	// Repair lets Open take damaged and missing files out of the copy. The caller then adds their rows again.
	Repair bool
	// Note, if set, is called with each text for the user, once.
	Note func(text string)
}

// Destination is a copy. It is a [replicate.Destination].
type Destination struct {
	Options
	storage
	manifest manifest
	version  string                  // of the manifest
	sets     map[string]*columns.Set // by embeddable
	replaced map[string]time.Time    // when the manifest ceased to name files that are still there
}

// Folder returns the copy in a folder of this machine, which is created if it is missing.
func Folder(path string, o Options) *Destination {
	return newDestination(o, &folder{path: path})
}

func newDestination(o Options, s storage) *Destination {
	o.Note = replicate.Once(o.Note)
	return &Destination{Options: o, storage: s}
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
	if err := d.load(ctx); err != nil {
		return at, err
	}
	if d.Repair {
		if err := d.dropDamaged(ctx); err != nil {
			return at, err
		}
	}
	// The new writer makes a commit of a process that had the copy before fail, also where there are no locks. Only
	// then are that process's files removed.
	d.manifest.Writer = random()
	if err := d.commit(ctx, d.manifest); err != nil {
		return at, err
	}
	d.replaced = map[string]time.Time{}
	return d.manifest.Position, d.clean(ctx)
}

// load reads and checks the manifest, or makes one for an empty storage.
func (d *Destination) load(ctx context.Context) error {
	data, version, err := d.read(ctx, manifestName)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	objects, err := d.list(ctx)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, o := range objects {
		if !o.past {
			there[o.name] = true
		}
	}
	d.sets, d.version = map[string]*columns.Set{}, version
	if !missing {
		return d.check(data, there)
	}
	for name := range there {
		if !unfinished.MatchString(name) {
			return fmt.Errorf("%s has files (%s) and no %s, so it is no copy of lectern sync: give an empty place", d, name, manifestName)
		}
	}
	d.manifest = manifest{
		Layout: layout, Source: d.Source, Columns: d.Columns.String(), Entries: []embeddable{}, Events: []file{}, Removals: []file{},
		Embeddables: []file{}, Versions: []file{}, Experiments: []file{}, History: []file{},
	}
	return nil
}

// check uses the manifest in data, if it has this source and its files are there.
func (d *Destination) check(data []byte, there map[string]bool) error {
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
	for name := range m.files() {
		if !there[name] && !d.Repair {
			return fmt.Errorf("%s lacks the file %s, which its %s names: restore it, or make a new copy in an empty place", d, name, manifestName)
		}
	}
	m.Source = d.Source
	d.manifest = m
	for _, e := range m.Entries {
		d.sets[e.EmbeddableID] = d.Columns.Restore(e.Columns)
	}
	return nil
}

var (
	// ownName matches the names that this package gives to files of rows.
	ownName = regexp.MustCompile(`^(entries/[^/]+|[a-z_]+)/[0-9]{20}-[0-9a-f]{16}\.parquet$`)
	// unfinished matches the names of files that a process was writing in a folder when it ended.
	unfinished = regexp.MustCompile(`^((entries/[^/]+|[a-z_]+)/)?\.(manifest\.json|[0-9]{20}-[0-9a-f]{16}\.parquet)\.[0-9]+$`)
)

// clean removes all versions of the files that neither the manifest names nor readers may still need, and the past
// versions of the manifest.
func (d *Destination) clean(ctx context.Context) error {
	objects, err := d.list(ctx)
	if err != nil {
		return err
	}
	named := d.manifest.files()
	for _, o := range objects {
		_, kept := d.replaced[o.name]
		if unfinished.MatchString(o.name) || ownName.MatchString(o.name) && !named[o.name] && !kept || o.name == manifestName && o.past {
			if err := d.remove(ctx, o); err != nil {
				return fmt.Errorf("remove %s, which is no part of the copy: %w", o.name, err)
			}
		}
	}
	return nil
}

// writers is how many files of a batch are written at a time. They mostly wait for the disk or the bucket.
const writers = 4

// Apply writes the files of a batch, and then the manifest that names them. A new copy gets an empty file of each kind, so
// that its readers find columns.
func (d *Destination) Apply(ctx context.Context, b *replicate.Batch) error {
	rows := rowsOf(b.Changes)
	if d.manifest.Began == 0 {
		d.manifest.Began = b.Known
	}
	if err := d.erase(ctx, rows.erased); err != nil {
		return err
	}
	next := d.manifest
	if len(next.Events) > 0 && len(b.Changes) == 0 && b.Project == nil && next.Position == b.Position {
		return nil
	}
	next.Position = b.Position
	next.Entries = slices.Clone(next.Entries)
	at := map[string]int{}
	for i, e := range next.Entries {
		at[e.EmbeddableID] = i
	}
	if len(next.Entries) == 0 && len(rows.embeddables) == 0 {
		rows.embeddables = []string{""}
	}
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, id := range rows.embeddables {
		i, ok := at[id]
		if !ok {
			i = len(next.Entries)
			next.Entries = append(next.Entries, embeddable{EmbeddableID: id})
			d.sets[id] = d.Columns.Set()
		}
		set := d.sets[id]
		for _, r := range rows.entries[id] {
			set.Observe(r.EntryData)
		}
		next.Entries[i].Columns = set.Columns()
		for _, c := range set.Misfits() {
			d.Note(c.Misfit(id))
		}
		at[id] = i
	}
	for _, id := range rows.embeddables {
		e := &next.Entries[at[id]]
		group.Go(func() (err error) {
			e.Files, err = add(limited, d, "entries/"+folderOf(id), e.Files, rows.entries[id], d.sets[id], rows.removed, !b.Current)
			return err
		})
	}
	group.Go(func() (err error) {
		next.Events, err = add(limited, d, "events", next.Events, rows.events, nil, rows.removed, !b.Current)
		return err
	})
	group.Go(func() (err error) {
		next.Removals, err = add(limited, d, "removals", next.Removals, rows.removals, nil, nil, !b.Current)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if err := d.putProject(ctx, &next, b.Project); err != nil {
		return err
	}
	return d.exchange(ctx, next)
}

// keepReplaced is how long files stay that the manifest no longer names, for readers that have read it before.
const keepReplaced = time.Hour

// exchange commits a manifest. Files that it no longer names stay for between one and two times keepReplaced, so that the
// storage is listed seldom.
func (d *Destination) exchange(ctx context.Context, next manifest) error {
	before := d.manifest.files()
	if err := d.commit(ctx, next); err != nil {
		return err
	}
	named, now := d.manifest.files(), time.Now()
	for name := range before {
		if !named[name] {
			d.replaced[name] = now
		}
	}
	due := false
	for _, since := range d.replaced {
		due = due || now.Sub(since) > 2*keepReplaced
	}
	if !due {
		return nil
	}
	maps.DeleteFunc(d.replaced, func(_ string, since time.Time) bool { return now.Sub(since) > keepReplaced })
	return d.clean(ctx)
}

// erase rewrites the files that have rows of erased entries, without these rows, and removes all files that the manifest
// does not name. The position does not change: a copy has passed an erasure only if nothing of it is left.
func (d *Destination) erase(ctx context.Context, erased removals) error {
	maps.DeleteFunc(erased, func(_ string, seq int64) bool { return seq <= d.manifest.Began })
	if len(erased) == 0 {
		return nil
	}
	next := d.manifest
	next.Entries = slices.Clone(next.Entries)
	var err error
	for i := range next.Entries {
		e := &next.Entries[i]
		if e.Files, err = without[entryRow](ctx, d, "entries/"+folderOf(e.EmbeddableID), e.Files, d.sets[e.EmbeddableID], erased, &next.Rewritten); err != nil {
			return err
		}
	}
	if next.Events, err = without[eventRow](ctx, d, "events", next.Events, nil, erased, &next.Rewritten); err != nil {
		return err
	}
	if next.Rewritten > d.manifest.Rewritten {
		if err := d.commit(ctx, next); err != nil {
			return err
		}
	}
	clear(d.replaced)
	return d.clean(ctx)
}

// without returns the files of a kind with those rewritten that have rows of removed entries. A file that loses all rows
// goes, unless no other is left.
func without[T row](ctx context.Context, d *Destination, kind string, files []file, set *columns.Set, removed removals, rewritten *int) (kept []file, err error) {
	for i, f := range files {
		var found bool
		err := eachRows(ctx, d, f, func(rows []key) error {
			found = found || slices.ContainsFunc(rows, removed.has)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if found {
			*rewritten++
			if f, err = write[T](ctx, d, kind, files[i:i+1], nil, set, removed); err != nil {
				return nil, err
			}
		}
		if f.Rows > 0 || i == len(files)-1 && len(kept) == 0 {
			kept = append(kept, f)
		}
	}
	return kept, nil
}

// Rows are joined with the files before them, unless these have more than smallBytes or more than joined times as many rows.
// From ownRows on, rows have a file of their own. So a copy that follows the feed consists of few small files, and each row
// is written a few times at most.
const (
	smallBytes = 256 << 10
	joined     = 8
	ownRows    = 2000
)

// add writes rows to a file of a kind, and returns files with it. Small files at the end are replaced by one that has their
// rows too, except those of entries that were removed. A load gathers some such files first.
func add[T row](ctx context.Context, d *Destination, kind string, files []file, rows []T, set *columns.Set, removed removals, load bool) ([]file, error) {
	if len(rows) == 0 && len(files) > 0 {
		return files, nil
	}
	keep, n, least := len(files), len(rows), 1
	if load {
		least = joined - 1
	}
	large := func(f file) bool { return f.Rows > joined*n || f.Bytes > smallBytes }
	for n < ownRows && keep >= least && !slices.ContainsFunc(files[keep-least:keep], large) {
		for range least {
			keep--
			n += files[keep].Rows
		}
	}
	if removed != nil {
		var err error
		if removed, err = d.removedFrom(ctx, files[keep:], removed); err != nil {
			return nil, err
		}
	}
	f, err := write(ctx, d, kind, files[keep:], rows, set, removed)
	return append(files[:keep:keep], f), err
}

// removedFrom adds to removed the earlier removals of entries that have rows in files. Only those of retention have left
// rows.
func (d *Destination) removedFrom(ctx context.Context, files []file, removed removals) (removals, error) {
	later := slices.DeleteFunc(slices.Clone(d.manifest.Removals), func(f file) bool { return len(files) == 0 || f.LastSeq < files[0].FirstSeq })
	if len(later) == 0 {
		return removed, nil
	}
	ids := map[string]bool{}
	for _, f := range files {
		err := eachRows(ctx, d, f, func(rows []key) error {
			for _, k := range rows {
				ids[k.EntryID] = true
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	removed = maps.Clone(removed)
	for _, f := range later {
		err := eachRows(ctx, d, f, func(rows []key) error {
			for _, k := range rows {
				if ids[k.EntryID] {
					removed[k.EntryID] = max(removed[k.EntryID], k.Seq)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return removed, nil
}

// write writes the rows of files and then further rows to a new file, without those of removed entries.
func write[T row](ctx context.Context, d *Destination, kind string, from []file, rows []T, set *columns.Set, removed removals) (file, error) {
	var b bytes.Buffer
	var made file
	w := parquetfile.NewWriter(&b, set, dataOf[T])
	put := func(rows []T) error {
		rows = slices.DeleteFunc(rows, func(r T) bool { return removed.has(r.key()) })
		if len(rows) == 0 {
			return nil
		}
		if made.Rows == 0 {
			made.FirstSeq = rows[0].key().Seq
		}
		made.Rows, made.LastSeq = made.Rows+len(rows), rows[len(rows)-1].key().Seq
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
	err := d.save(ctx, kind, &made, b.Bytes())
	return made, err
}

// save writes a file of a kind under a new name.
func (d *Destination) save(ctx context.Context, kind string, f *file, data []byte) error {
	f.Path, f.Bytes = fmt.Sprintf("%s/%020d-%s.parquet", kind, f.LastSeq, random()), len(data)
	if err := d.write(ctx, f.Path, data); err != nil {
		return fmt.Errorf("write %s: %w", f.Path, err)
	}
	return nil
}

// folderOf returns the folder of an embeddable: its id, with each other byte than letters, digits, - and _ as ~ and two hex
// digits. A digest replaces the end of a long one.
func folderOf(id string) string {
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; c < 0x80 && (c == '-' || c == '_' || unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c))) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "~%02x", c)
		}
	}
	const longest = 100
	if b.Len() == 0 || b.Len() > longest {
		return fmt.Sprintf("%.*s~%x", longest, b.String(), sha256.Sum256([]byte(id)))
	}
	return b.String()
}

// eachRows calls do with the rows of a file of the copy, some at a time.
func eachRows[T any](ctx context.Context, d *Destination, f file, do func([]T) error) error {
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

// files returns the paths of the files.
func (m *manifest) files() map[string]bool {
	named := map[string]bool{}
	lists := [][]file{m.Events, m.Removals, m.Embeddables, m.Versions, m.Experiments, m.History}
	for _, e := range m.Entries {
		lists = append(lists, e.Files)
	}
	for _, f := range slices.Concat(lists...) {
		named[f.Path] = true
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

// Full reports whether a key that this run met has no column, because its embeddable has [columns.Most].
func (d *Destination) Full() bool {
	for _, set := range d.sets {
		if set.Full() {
			return true
		}
	}
	return false
}

// Close releases the copy.
func (d *Destination) Close() error { return d.unlock() }

func random() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}
