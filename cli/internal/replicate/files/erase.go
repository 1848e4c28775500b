package files

import (
	"context"
	"maps"
	"slices"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/cli/internal/parquetfile"
)

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
		if e.Files, err = without[entryRow](ctx, d, e.folder(), e.Files, d.sets[e.EmbeddableID], erased, &next.Rewritten); err != nil {
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
		found := false
		if d.mayHave(ctx, f, removed) {
			if err := d.eachKey(ctx, files[i:i+1], func(k key) { found = found || removed.has(k) }); err != nil {
				return nil, err
			}
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

// mayHave reports whether a file may have rows of removed entries. A file that it cannot open may have them, so that the
// caller reads it and gets the error.
func (d *Destination) mayHave(ctx context.Context, f file, removed removals) bool {
	end, err := d.open(ctx, f.Path)
	if err != nil {
		return true
	}
	defer end.Close()
	return parquetfile.MayHave(end, int64(f.Bytes), maps.Keys(removed))
}
