// Package files keeps a copy of a project as Parquet files in a folder or a bucket. Files never change. The file
// manifest.json names all files of the copy and holds its position. It is replaced atomically after the files of a batch
// are written. Files that it does not name do not belong to the copy. An erasure replaces the files that have its rows.
package files

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/cli/internal/replicate"
)

// Options configure a copy.
type Options struct {
	Source replicate.Source
	// Moved accepts a copy that was made from another URL of the same project.
	Moved bool
	// Columns selects the keys of entry_data that become columns.
	Columns columns.Choice
	// Mask is that of [replicate.Options]. Columns that it leaves out are null.
	Mask *replicate.Mask
	// Repair accepts a copy with damaged and missing files. [Destination.Mend] writes their rows again; a list of
	// records that the key may not read is left to the next sync.
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
	// sums has the digests of the files that were read, by path. If it is nil, a file with another digest than the manifest's is
	// an error.
	sums map[string]string
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
	if err := d.lock(ctx); err != nil {
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
	// The new writer makes a commit of a process that had the copy before fail, also where there are no locks. Only
	// then are that process's files removed.
	d.manifest.Writer = random()
	if err := d.commit(ctx, d.manifest); err != nil {
		return at, err
	}
	d.replaced = map[string]time.Time{}
	return d.manifest.Position, d.clean(ctx)
}

// writers is how many files of a batch are written at a time. They mostly wait for the disk or the bucket.
const writers = 4

// Apply writes the files of a batch, and then the manifest that names them. A new copy gets an empty file of each kind, so
// that its readers find columns.
func (d *Destination) Apply(ctx context.Context, b *replicate.Batch) (err error) {
	defer func() {
		if err == nil && b.Current { // the counts are those of all changes until now
			for _, note := range columns.Notes(d.sets) {
				d.Note(note)
			}
		}
	}()
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
	if len(next.Entries) == 0 && len(rows.embeddables) == 0 {
		rows.embeddables = []string{""}
	}
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, e := range d.observe(&next, rows) {
		group.Go(func() (err error) {
			e.Files, err = add(limited, d, e.folder(), e.Files, rows.entries[e.EmbeddableID], d.sets[e.EmbeddableID], rows.removed, !b.Current)
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

// observe adds the embeddables of rows, and columns for their keys, to a new list of the manifest. It returns those of rows.
func (d *Destination) observe(m *manifest, rows *batch) (list []*embeddable) {
	m.Entries = slices.Clone(m.Entries)
	at := map[string]int{}
	for i, e := range m.Entries {
		at[e.EmbeddableID] = i
	}
	for _, id := range rows.embeddables {
		if _, ok := at[id]; !ok {
			at[id] = len(m.Entries)
			m.Entries = append(m.Entries, embeddable{EmbeddableID: id})
			d.sets[id] = d.Columns.Set()
		}
	}
	for _, id := range rows.embeddables {
		e, set := &m.Entries[at[id]], d.sets[id]
		for _, r := range rows.entries[id] {
			set.Observe(r.EntryID, r.EntryData)
		}
		e.Columns = set.Columns()
		list = append(list, e)
	}
	return list
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
