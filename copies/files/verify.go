package files

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
)

// verifiedName is the name of the file with the result of the last verification.
const verifiedName = "verified.json"

// state is the copy as one manifest describes it. Later batches do not change a state. state is the [copies.State] of
// this package.
type state struct{ *Destination }

// Look returns the current state of the copy, and the state's position. Look does not lock the copy, so another
// process may write meanwhile. A storage without a copy is an error.
func (d *Destination) Look(ctx context.Context) (_ copies.State, at copies.Position, err error) {
	s := state{&Destination{Options: d.Options, storage: d.storage, since: d.since, seen: map[string]file{}}}
	// Another process may replace the manifest and remove files between the two reads of a load.
	if s.load(ctx) != nil {
		if err := s.load(ctx); err != nil {
			return nil, at, err
		}
	}
	if s.manifest.Writer == "" {
		return nil, at, fmt.Errorf("%s has no copy", d)
	}
	if !d.Repair && (s.manifest.Unfilled != nil || len(d.since.Gained(s.manifest.Revision)) > 0) {
		return nil, at, copies.UnfilledError(d)
	}
	return s, s.manifest.Position, nil
}

// History returns true: the files keep the older rows of an entry, after a later row of the same entry.
func (state) History() bool { return true }

func (state) Close() error { return nil }

func (s state) Stored(_ context.Context, changes []client.Change) ([]copies.Row, error) {
	rows := make([]copies.Row, len(changes))
	for i, c := range changes {
		rows[i].Change = c
	}
	return rows, nil
}

// Tables returns the lists of the records that have no feed, and a table of the files with their digests. The digests
// also verify parts of the files that no row shows: columns of entry_data, and Bloom filters.
func (s state) Tables(ctx context.Context, p *copies.Project) (tables []copies.Table) {
	for _, l := range s.lists(ctx, &s.manifest, p) {
		tables = append(tables, l.Table)
	}
	named := s.manifest.all()
	return append(tables, copies.Table{
		Kind: "file", Own: true,
		Source: copies.Records(copies.Sound(named), func(f file) copies.Record {
			return copies.Record{ID: f.Path, Values: f}
		}),
		Copy: func(yield func(copies.Record, error) bool) {
			for _, f := range named {
				is, read := s.seen[f.Path]
				if !read {
					data, _, err := s.read(ctx, f.Path)
					if err != nil {
						err = s.unlessReplaced(ctx, f, err)
					}
					if errors.Is(err, fs.ErrNotExist) && !copies.IsTemporary(err) {
						continue // the file is missing, and so its record is too
					}
					if err != nil {
						yield(copies.Record{}, err)
						return
					}
					is = f
					is.SHA256, is.Bytes = sumOf(data), len(data)
				}
				if !yield(copies.Record{ID: f.Path, Values: is}, nil) {
					return
				}
			}
		},
	})
}

func (s state) NotCompared(context.Context) ([]string, error) {
	return []string{"earlier states of entries"}, nil
}

func (s state) Rows(ctx context.Context) iter.Seq2[copies.Row, error] {
	return func(yield func(copies.Row, error) bool) {
		goOn := true
		for _, e := range s.manifest.Entries {
			goOn = goOn && eachChange(ctx, s, e.Files, func(r copies.Row, err error) bool {
				if r.Entry != nil && r.Entry.EmbeddableID != e.EmbeddableID {
					r.Columns = "in the files of the embeddable " + e.EmbeddableID
				}
				return yield(r, err)
			}, entryRow.change)
		}
		_ = goOn && eachChange(ctx, s, s.manifest.Events, yield, eventRow.change) && eachChange(ctx, s, s.manifest.Removals, yield, removalRow.change)
	}
}

// eachChange yields the rows of files as changes. eachChange returns false if the caller stops or an error occurs.
func eachChange[T row](ctx context.Context, s state, files []file, yield func(copies.Row, error) bool, change func(T) client.Change) bool {
	for r, err := range storedRows[T](ctx, s.Destination, files) {
		var c copies.Row
		if err == nil {
			c.Change = change(r)
		}
		if !yield(c, err) || err != nil {
			return false
		}
	}
	return true
}

var errStop = errors.New("the caller has stopped")

// storedRows returns an iterator over the rows of files. An error ends the iteration as the last pair. During a repair, a
// damaged file is no error, and the rows that cannot be read are missing.
func storedRows[T any](ctx context.Context, d *Destination, files []file) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, f := range files {
			err := eachRows(ctx, d, f, func(rows []T) error {
				for _, r := range rows {
					if !yield(r, nil) {
						return errStop
					}
				}
				return nil
			})
			if errors.Is(err, errStop) {
				return
			}
			if err != nil && !(d.Repair && errors.Is(err, errDamaged)) {
				yield(*new(T), d.unlessReplaced(ctx, f, err))
				return
			}
		}
	}
}

// unlessReplaced returns err, the error of reading the file f. If another process has replaced f meanwhile, the error
// is temporary, because another Look reads the new files.
func (d *Destination) unlessReplaced(ctx context.Context, f file, err error) error {
	if now, _, lookErr := d.Look(ctx); lookErr == nil && !now.(state).manifest.files()[f.Path] {
		return copies.Temporary(err)
	}
	return err
}

func (r entryRow) change() client.Change {
	return client.Change{Type: client.EntryChanged, Seq: r.Seq, Entry: &client.Entry{
		EntryID: r.EntryID, GroupID: r.GroupID, ProjectID: r.ProjectID, EmbeddableID: r.EmbeddableID, ContactID: r.ContactID,
		CreatedAt: time.UnixMicro(r.CreatedAt), UpdatedAt: time.UnixMicro(r.UpdatedAt), Data: r.EntryData,
	}}
}

func (r eventRow) change() client.Change {
	return client.Change{Type: client.EventAdded, Seq: r.Seq, Event: &client.ChangedEvent{EventKey: r.EventKey, EventID: r.EventID, URL: r.URL, Event: client.Event{
		EntryID: r.EntryID, ContactID: r.ContactID, ProjectID: r.ProjectID, GroupID: r.GroupID, EmbeddableID: r.EmbeddableID,
		VersionNumber: r.EmbeddableVersionNumber, Timestamp: time.UnixMicro(r.Timestamp), PageID: r.PageID, PageKey: r.PageKey, PageIndex: r.PageIndex,
		MaxPageID: r.MaxPageID, MaxPageKey: r.MaxPageKey, MaxPageIndex: r.MaxPageIndex, TotalPages: r.TotalPages,
		EventType: r.EventType, ViewType: r.ViewType, CustomEventName: r.CustomEventName, CustomEventProps: r.CustomEventProps,
	}}}
}

func (r removalRow) change() client.Change {
	return client.Change{Type: client.EntryRemoved, Seq: r.Seq, Removal: &client.Removal{
		EntryID: r.EntryID, RemovedAt: time.UnixMicro(r.RemovedAt), Reason: client.RemovalReason(r.Reason),
	}}
}

// Mend repairs the differences that a verification found. Mend rewrites each file that is damaged, or has rows to
// remove or to add, and then replaces the manifest.
func (d *Destination) Mend(ctx context.Context, m *copies.Mending) (err error) {
	next := d.manifest
	next.Entries = slices.Clone(next.Entries)
	aside := &aside{m.Loss, map[copies.Key]client.Change{}}
	has := func(t client.ChangeType, id string, change func() client.Change) bool {
		key := copies.Key{Type: t, ID: id}
		if m.Keys[key] == "" {
			return false
		}
		aside.add(key, change)
		return true
	}
	for i := range next.Entries {
		e := &next.Entries[i]
		if e.Files, err = cut(ctx, d, e.folder(), e.Files, d.sets[e.EmbeddableID], func(r entryRow) bool { return has(client.EntryChanged, r.EntryID, r.change) }); err != nil {
			return err
		}
	}
	if next.Events, err = cut(ctx, d, "events", next.Events, nil, func(r eventRow) bool { return has(client.EventAdded, r.EventKey, r.change) }); err != nil {
		return err
	}
	if next.Removals, err = cut(ctx, d, "removals", next.Removals, nil, func(r removalRow) bool { return has(client.EntryRemoved, r.EntryID, r.change) }); err != nil {
		return err
	}
	for changes, err := range m.Put {
		if err != nil {
			return err
		}
		rows := rowsOf(changes)
		for _, e := range d.observe(&next, rows) {
			if e.Files, err = fill(ctx, d, e.folder(), e.Files, d.sets[e.EmbeddableID], rows.entries[e.EmbeddableID]); err != nil {
				return err
			}
		}
		if next.Events, err = fill(ctx, d, "events", next.Events, nil, rows.events); err != nil {
			return err
		}
		if next.Removals, err = fill(ctx, d, "removals", next.Removals, nil, rows.removals); err != nil {
			return err
		}
	}
	next.Position.Project = m.Digest
	if m.Loss != nil {
		if err := d.putAside(ctx, aside); err != nil {
			return err
		}
		if m.Loss.Last {
			next.Position.Cursor, next.Position.Seq = "", m.Loss.After
		}
	}
	if err := d.putProject(ctx, &next, m.Project); err != nil {
		return err
	}
	if err := d.exchange(ctx, next); err != nil || len(aside.newest) == 0 {
		return err
	}
	d.Note(m.Loss.Note("the folder lost of "+d.String(), d.Mask))
	return nil
}

// cut returns files without the rows that remove selects. Each file that has such rows, or is damaged, is rewritten.
// Of a damaged file, the rows that can be read remain.
func cut[T row](ctx context.Context, d *Destination, kind string, files []file, set *columns.Set, remove func(T) bool) ([]file, error) {
	files = slices.Clone(files)
	for i, f := range files {
		var left []T
		changed := false
		err := eachRows(ctx, d, f, func(rows []T) error {
			some := slices.DeleteFunc(rows, remove)
			left, changed = append(left, some...), changed || len(some) < len(rows)
			return nil
		})
		if errors.Is(err, errDamaged) || err == nil && changed {
			files[i], err = rewrite(ctx, d, kind, f, left, set)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// fill returns files with rows added. rows are ordered by number, and each row belongs into the first file whose last
// number is not smaller. Rows after the last file are added as rows of a batch.
func fill[T row](ctx context.Context, d *Destination, kind string, files []file, set *columns.Set, rows []T) ([]file, error) {
	files = slices.Clone(files)
	for i, f := range files {
		n := 0 // rows that belong into f
		for n < len(rows) && rows[n].key().Seq <= max(f.LastSeq, f.until) {
			n++
		}
		if n == 0 {
			continue
		}
		all := slices.Clone(rows[:n])
		rows = rows[n:]
		err := eachRows(ctx, d, f, func(some []T) error {
			all = append(all, some...)
			return nil
		})
		if err == nil {
			files[i], err = rewrite(ctx, d, kind, f, all, set)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(rows) == 0 {
		return files, nil
	}
	return add(ctx, d, kind, files, rows, set, nil, false)
}

// rewrite writes a file with rows, ordered by number, that takes the place of f in the copy.
func rewrite[T row](ctx context.Context, d *Destination, kind string, f file, rows []T, set *columns.Set) (file, error) {
	slices.SortStableFunc(rows, func(a, b T) int { return cmp.Compare(a.key().Seq, b.key().Seq) })
	made, err := write(ctx, d, kind, nil, rows, set, nil)
	made.until = max(f.LastSeq, f.until)
	return made, err
}

// SetVerified stores the result of a verification in the file verified.json, next to the manifest.
func (d *Destination) SetVerified(ctx context.Context, v copies.Verified) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return d.write(ctx, verifiedName, append(data, '\n'))
}

// Status returns the source and position of the copy from the manifest, and the last result that SetVerified stored.
// Status does not lock the copy.
func (d *Destination) Status(ctx context.Context) (s copies.Status, err error) {
	var m manifest
	if err := d.decode(ctx, manifestName, &m); err != nil {
		return s, err
	}
	s = copies.Status{ProjectID: m.ProjectID, Position: m.Position, Rewritten: &m.Rewritten}
	if err := d.decode(ctx, verifiedName, &s.Verified); !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	return s, nil
}

// decode reads the JSON file name of the copy into the value that into points to.
func (d *Destination) decode(ctx context.Context, name string, into any) error {
	data, _, err := d.read(ctx, name)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", name, d, err)
	}
	return nil
}
