// Package files keeps a copy of a project as Parquet files in a folder or a bucket. Parquet files never change. The
// file manifest.json names all files of the copy and holds the copy's position. After the files of a batch are
// written, the package replaces the manifest atomically. Files that the manifest does not name do not belong to the
// copy. An erasure replaces the files that have rows of the erased entry.
package files

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/internal/since"
)

// Options configure a [Destination]: which project it copies, which columns it has, and which existing copies it
// accepts.
type Options struct {
	Source copies.Source
	// Moved accepts a copy that was made from another URL of the same project.
	Moved bool
	// Columns selects the keys of entry_data that become columns of the files. The choice must be that of the existing
	// copy.
	Columns columns.Choice
	// Mask is the same as that of [copies.Options]. Fields that the mask leaves out are null.
	Mask *copies.Mask
	// Repair accepts a copy with damaged and missing files, whose rows [Destination.Mend] writes again. A damaged list
	// of records that the key may not read is written by the next sync whose key may.
	Repair bool
	// Note, if set, is called with a text for the user, once for each different text.
	Note func(text string)
}

// Destination is a copy in Parquet files, in a folder or a bucket. Destination is a [copies.Destination] and a
// [copies.Verifiable].
type Destination struct {
	Options
	storage
	since    since.Table
	manifest manifest
	version  string                  // of the manifest
	sets     map[string]*columns.Set // by embeddable
	replaced map[string]time.Time    // when the manifest ceased to name files that still exist
	// seen has what the files that were read are, by path. If seen is nil, a file that differs from the
	// manifest's is an error.
	seen map[string]file
}

// Folder returns the copy in the folder at path on this machine. Open creates a missing folder.
func Folder(path string, o Options) *Destination {
	return newDestination(o, &folder{path: path})
}

func newDestination(o Options, s storage) *Destination {
	o.Note = copies.Once(o.Note)
	return &Destination{Options: o, storage: s, since: since.Copies}
}

// Traits returns that a copy has all records.
func (*Destination) Traits() copies.Traits { return copies.Traits{Project: true} }

// Limits returns how many changes and bytes a batch may have. Changes linger for a minute, so that a copy that follows
// the feed does not consist of very small files.
func (*Destination) Limits() copies.Limits {
	return copies.Limits{Changes: 50_000, Bytes: 4 << 20, Linger: time.Minute}
}

// Open locks the copy, creates it if it is missing, and returns its position. A copy of another source, or with other
// options, is an error. Open removes Parquet files that this package wrote and the manifest does not name.
func (d *Destination) Open(ctx context.Context) (at copies.Position, err error) {
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
	// The new writer id changes the manifest. So a later commit of a process that had the copy before fails, even in a
	// bucket, which has no locks. After this commit, clean may remove the files of that process.
	d.manifest.Writer = random()
	d.gain()
	if err := d.commit(ctx, d.manifest); err != nil {
		return at, err
	}
	d.replaced = map[string]time.Time{}
	return d.manifest.Position, d.clean(ctx)
}

// writers is how many files of a batch are written at a time. A writer mostly waits for the disk or the bucket.
const writers = 4

// Apply removes the rows of erased entries, writes the files of a batch, and then the manifest that names them. In a
// new copy, Apply also writes files without rows for entries, events and removals, so that readers find the columns.
func (d *Destination) Apply(ctx context.Context, b *copies.Batch) (err error) {
	defer func() {
		if err == nil && b.Current { // notes have the counts of all changes until now
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

// observe adds the embeddables of rows to m, and columns for their keys of entry_data. observe returns the embeddables
// of m that have rows. m gets a new slice, so the current manifest does not change.
func (d *Destination) observe(m *manifest, rows *batch) (list []*embeddable) {
	m.Entries = slices.Clone(m.Entries)
	at := map[string]int{}
	for i, e := range m.Entries {
		at[e.EmbeddableID] = i
	}
	for _, id := range rows.embeddables {
		if _, ok := at[id]; !ok {
			id = strings.Clone(id)
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

// Remarks returns sentences for the user about keys of entry_data that got no column in this run.
func (d *Destination) Remarks() []string { return columns.Remarks(d.sets) }

// Close releases the lock of the copy, so that another process can open the copy.
func (d *Destination) Close() error { return d.unlock() }
