package files

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
)

// gain notes in the manifest that this version writes the copy from now on. If this version has columns that the
// version before lacked, gain lets the run fill all rows. An older version drops such columns from each file that it
// writes.
func (d *Destination) gain() {
	switch was := d.manifest.Revision; {
	case was > d.since.Number:
		d.Note("A newer version of lectern has added columns to the copy. This version leaves the columns out of the files that it writes. The newer version fills them.")
	case len(d.since.Gained(was)) > 0:
		d.manifest.Unfilled = &copies.Position{}
		d.Note(fmt.Sprintf("This version of lectern has added to the copy: %s.", strings.Join(d.since.Gained(was), ", ")))
	}
	if at, unfilled := d.Unfilled(); unfilled {
		d.Note(fmt.Sprintf("Rows after change %d may lack values in added columns. The run reads the feed again and fills them.", at.Seq))
	}
	d.manifest.Revision = d.since.Number
}

// Unfilled returns the position after which rows may lack values in columns that a version added.
func (d *Destination) Unfilled() (copies.Position, bool) {
	if d.manifest.Unfilled == nil {
		return copies.Position{}, false
	}
	return *d.manifest.Unfilled, true
}

// Fill replaces the rows of the changes in f by rows with all columns. A file whose rows are right is not written.
func (d *Destination) Fill(ctx context.Context, f *copies.Filling) (err error) {
	next, rows := d.manifest, rowsOf(f.Changes)
	next.Unfilled = &f.Position
	if f.Last {
		next.Unfilled = nil
	}
	next.Entries = slices.Clone(next.Entries)
	for i := range next.Entries {
		e := &next.Entries[i]
		if e.Files, err = renew(ctx, d, e.folder(), e.Files, d.sets[e.EmbeddableID], rows.entries[e.EmbeddableID]); err != nil {
			return err
		}
	}
	if next.Events, err = renew(ctx, d, "events", next.Events, nil, rows.events); err != nil {
		return err
	}
	return d.exchange(ctx, next)
}

// renew returns files in which a row has the values of the row with the same key in rows, which are ordered by number.
func renew[T row](ctx context.Context, d *Destination, kind string, files []file, set *columns.Set, rows []T) ([]file, error) {
	files = slices.Clone(files)
	current := map[key]T{}
	for _, r := range rows {
		current[r.key()] = r
	}
	for i, f := range files {
		if !slices.ContainsFunc(rows, func(r T) bool { return f.FirstSeq <= r.key().Seq && r.key().Seq <= f.LastSeq }) {
			continue
		}
		var all []T
		changed := false
		err := eachRows(ctx, d, f, func(some []T) error {
			for _, r := range some {
				if now, ok := current[r.key()]; ok && !reflect.DeepEqual(now, r) {
					r, changed = now, true
				}
				all = append(all, r)
			}
			return nil
		})
		if err == nil && changed {
			files[i], err = rewrite(ctx, d, kind, f, all, set)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
