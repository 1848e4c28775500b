package files

import (
	"context"
	"maps"
	"slices"

	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/parquetfile"
)

// erase rewrites each file that has rows of erased entries, without these rows. erase then removes the files of the
// copy that the manifest no longer names. erase leaves the copy's position unchanged: Apply commits the position of an
// erasure only after no row of the entry is left.
func (d *Destination) erase(ctx context.Context, erased removals) error {
	maps.DeleteFunc(erased, func(_ string, seq int64) bool { return seq <= d.manifest.Began })
	if len(erased) == 0 {
		return nil
	}
	if err := d.eraseLost(ctx, erased); err != nil {
		return err
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

// without returns files, with each file that has rows of removed entries rewritten without these rows. A file that
// loses all rows is dropped, unless no other file would be left. kind is the folder of the files. without adds the
// number of rewritten files to rewritten.
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

// mayHave reports whether the file f may have rows of removed entries, by the Bloom filter in f. For a file that
// mayHave cannot open, the result is true, so that the caller reads the file and gets the error.
func (d *Destination) mayHave(ctx context.Context, f file, removed removals) bool {
	end, err := d.open(ctx, f.Path)
	if err != nil {
		return true
	}
	defer end.Close()
	return parquetfile.MayHave(end, int64(f.Bytes), maps.Keys(removed))
}
