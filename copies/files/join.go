package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/parquetfile"
)

// Apply joins the rows of a batch with the rows of earlier files into a new file, from the last file backwards.
// Joining stops when ownRows rows are gathered. Joining also stops at a file of more than smallBytes bytes, or of more
// than joined times as many rows as are gathered. So a copy that follows the feed consists of few small files, and
// each row is rewritten only a few times.
const (
	smallBytes = 256 << 10
	joined     = 8
	ownRows    = 2000
)

// add writes rows to a new file of a kind, and returns files with the new file. The new file may replace small files at
// the end of files, and then has their rows too, except those of removed entries. If load is set, add replaces files
// only if at least joined-1 files at the end are small.
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

// removedFrom returns removed with earlier removals of entries that have rows in files. Only removals by retention
// leave rows in files, because an erasure rewrites the files.
func (d *Destination) removedFrom(ctx context.Context, files []file, removed removals) (removals, error) {
	later := slices.DeleteFunc(slices.Clone(d.manifest.Removals), func(f file) bool { return len(files) == 0 || f.LastSeq < files[0].FirstSeq })
	if len(later) == 0 {
		return removed, nil
	}
	ids := map[string]bool{}
	if err := d.eachKey(ctx, files, func(k key) { ids[k.EntryID] = true }); err != nil {
		return nil, err
	}
	removed = maps.Clone(removed)
	err := d.eachKey(ctx, later, func(k key) {
		if ids[k.EntryID] {
			removed[k.EntryID] = max(removed[k.EntryID], k.Seq)
		}
	})
	return removed, err
}

// write writes the rows of the files from, and then rows, to a new file of the kind. write leaves out rows of removed
// entries.
func write[T row](ctx context.Context, d *Destination, kind string, from []file, rows []T, set *columns.Set, removed removals) (file, error) {
	var b bytes.Buffer
	var made file
	w := parquetfile.NewWriter(&b, set, dataOf[T], d.Mask.Names()...)
	keep := func(k key) bool {
		if removed.has(k) {
			return false
		}
		if made.Rows == 0 {
			made.FirstSeq = k.Seq
		}
		made.Rows, made.LastSeq = made.Rows+1, k.Seq
		return true
	}
	for _, f := range from {
		data, sum, err := d.content(ctx, f)
		if err == nil && sum != f.SHA256 {
			err = d.changed(f)
		}
		if err == nil {
			err = parquetfile.Copy(w, bytes.NewReader(data), func(seq int64, entryID string) bool { return keep(key{seq, entryID}) })
		}
		if err != nil {
			return made, err
		}
	}
	if err := w.Write(slices.DeleteFunc(rows, func(r T) bool { return !keep(r.key()) })); err != nil {
		return made, err
	}
	if err := w.Close(); err != nil {
		return made, err
	}
	err := d.save(ctx, kind, &made, b.Bytes())
	return made, err
}

// save writes data as a file of a kind under a new name, and sets the path, the size and the digest in f.
func (d *Destination) save(ctx context.Context, kind string, f *file, data []byte) error {
	f.Path, f.Bytes, f.SHA256 = fmt.Sprintf("%s/%020d-%s.parquet", kind, f.LastSeq, random()), len(data), sumOf(data)
	if err := d.write(ctx, f.Path, data); err != nil {
		return fmt.Errorf("write %s: %w", f.Path, err)
	}
	return nil
}

// eachKey reads files and calls do with the key of each row: the change's number and the entry.
func (d *Destination) eachKey(ctx context.Context, files []file, do func(key)) error {
	for _, f := range files {
		err := eachRows(ctx, d, f, func(rows []key) error {
			for _, k := range rows {
				do(k)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// errDamaged is in the chain of the error for a file of the copy that is missing, changed or not decodable.
var errDamaged = errors.New("restore it, or let lectern sync --verify --repair write its rows again")

// content returns the content of a file of the copy, and the digest of the content. A missing file is an error with
// errDamaged.
func (d *Destination) content(ctx context.Context, f file) (data []byte, sum string, err error) {
	data, _, err = d.read(ctx, f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s lacks the file %s, which its %s names: %w", d, f.Path, manifestName, errDamaged)
	}
	return data, sumOf(data), err
}

// changed returns the error for a file whose digest differs from the manifest's.
func (d *Destination) changed(f file) error {
	return fmt.Errorf("the file %s of %s is not as it was written: %w", f.Path, d, errDamaged)
}

// eachRows reads a file of the copy and calls do with its rows, a group at a time. If do returns an error, eachRows
// stops. After the last row, eachRows checks that the file is as the manifest says, unless d.seen notes what it is.
func eachRows[T any](ctx context.Context, d *Destination, f file, do func([]T) error) error {
	data, sum, err := d.content(ctx, f)
	if err != nil {
		return err
	}
	is := f
	is.SHA256, is.Bytes, is.Rows, is.FirstSeq, is.LastSeq = sum, len(data), 0, 0, 0
	defer func() {
		if d.seen != nil {
			d.seen[f.Path] = is
		}
	}()
	for rows, err := range parquetfile.Rows[T](bytes.NewReader(data)) {
		if err != nil {
			return fmt.Errorf("%s: %w: %w", f.Path, err, errDamaged)
		}
		count(&is, rows)
		if err := do(rows); err != nil {
			return err
		}
	}
	if d.seen == nil && is != f {
		return d.changed(f)
	}
	return nil
}

// count adds rows to the number of rows and to the numbers of changes of f.
func count[T any](f *file, rows []T) {
	if len(rows) == 0 {
		return
	}
	if f.Rows == 0 {
		f.FirstSeq = seqOf(&rows[0])
	}
	f.Rows, f.LastSeq = f.Rows+len(rows), seqOf(&rows[len(rows)-1])
}

// seqOf returns the number of the change of a row; 0 for a row that has none.
func seqOf(row any) int64 {
	switch r := row.(type) {
	case *key:
		return r.Seq
	case interface{ key() key }:
		return r.key().Seq
	}
	return 0
}

// sumOf returns the SHA-256 digest of a file's content, as hexadecimal digits.
func sumOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }
