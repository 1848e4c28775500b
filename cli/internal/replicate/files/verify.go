package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/cli/internal/parquetfile"
	"github.com/lectern-dev/lectern/cli/internal/replicate"
	"github.com/lectern-dev/lectern/client"
)

// verifiedName is the file of the last verification.
const verifiedName = "verified.json"

// state is a state of a copy: a manifest and its files. It is a [replicate.State].
type state struct{ *Destination }

// Look returns the state of the manifest.
func (d *Destination) Look(ctx context.Context) (replicate.State, error) {
	s := state{&Destination{Options: d.Options, storage: d.storage}}
	// Another process may replace the manifest and remove files between the two reads of a load.
	if s.load(ctx) != nil {
		if err := s.load(ctx); err != nil {
			return nil, err
		}
	}
	if s.manifest.Writer == "" {
		return nil, fmt.Errorf("%s has no copy", d)
	}
	return s, nil
}

func (s state) Position() replicate.Position { return s.manifest.Position }

// History reports that rows stay after later ones.
func (state) History() bool { return true }

func (state) Close() error { return nil }

func (s state) Stored(_ context.Context, changes []client.Change) ([]client.Change, error) {
	return changes, nil
}

func (s state) Rows(ctx context.Context) iter.Seq2[client.Change, error] {
	return func(yield func(client.Change, error) bool) {
		goOn := true
		for _, e := range s.manifest.Entries {
			goOn = goOn && eachChange(ctx, s, e.Files, yield, entryRow.change)
		}
		_ = goOn && eachChange(ctx, s, s.manifest.Events, yield, eventRow.change) && eachChange(ctx, s, s.manifest.Removals, yield, removalRow.change)
	}
}

var errStop = errors.New("the caller has stopped")

// eachChange yields the rows of files as changes, and reports whether the loop goes on.
func eachChange[T row](ctx context.Context, s state, files []file, yield func(client.Change, error) bool, change func(T) client.Change) bool {
	for _, f := range files {
		err := eachRows(ctx, s.Destination, f, func(rows []T) error {
			for _, r := range rows {
				if !yield(change(r), nil) {
					return errStop
				}
			}
			return nil
		})
		if errors.Is(err, errStop) {
			return false
		}
		if err != nil {
			// Another process may have replaced the file.
			if now, again := s.Look(ctx); again == nil && !now.(state).manifest.files()[f.Path] {
				err = replicate.Temporary(err)
			}
			yield(client.Change{}, err)
			return false
		}
	}
	return true
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

// Mend rewrites the files that have rows to remove, adds files, and then replaces the manifest.
func (d *Destination) Mend(ctx context.Context, m *replicate.Mending) (err error) {
	next := d.manifest
	next.Entries = slices.Clone(next.Entries)
	for i := range next.Entries {
		e := &next.Entries[i]
		keep := func(r entryRow) bool { return !m.Entries[r.EntryID] }
		if e.Files, err = kept(ctx, d, e.folder(), e.Files, d.sets[e.EmbeddableID], keep); err != nil {
			return err
		}
	}
	if next.Events, err = kept(ctx, d, "events", next.Events, nil, func(r eventRow) bool { return !m.Events[r.EventKey] }); err != nil {
		return err
	}
	if next.Removals, err = kept(ctx, d, "removals", next.Removals, nil, func(r removalRow) bool { return !m.Removals[r.EntryID] }); err != nil {
		return err
	}
	for changes, err := range m.Put {
		if err != nil {
			return err
		}
		rows := rowsOf(changes)
		for _, e := range d.observe(&next, rows) {
			if e.Files, err = added(ctx, d, e.folder(), e.Files, rows.entries[e.EmbeddableID], d.sets[e.EmbeddableID]); err != nil {
				return err
			}
		}
		if next.Events, err = added(ctx, d, "events", next.Events, rows.events, nil); err != nil {
			return err
		}
	}
	return d.exchange(ctx, next)
}

// kept returns files with those rewritten that have rows not to keep.
func kept[T row](ctx context.Context, d *Destination, kind string, files []file, set *columns.Set, keep func(T) bool) ([]file, error) {
	files = slices.Clone(files)
	for i, f := range files {
		var rows []T
		all := true
		err := eachRows(ctx, d, f, func(some []T) error {
			for _, r := range some {
				if !keep(r) {
					all = false
					continue
				}
				rows = append(rows, r)
			}
			return nil
		})
		if err == nil && (!all || len(rows) != f.Rows) {
			files[i], err = write(ctx, d, kind, nil, rows, set, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// added returns files with one of rows, in the order of their last numbers.
func added[T row](ctx context.Context, d *Destination, kind string, files []file, rows []T, set *columns.Set) ([]file, error) {
	if len(rows) == 0 {
		return files, nil
	}
	f, err := write(ctx, d, kind, nil, rows, set, nil)
	files = append(slices.Clone(files), f)
	slices.SortStableFunc(files, func(a, b file) int { return cmp.Compare(a.LastSeq, b.LastSeq) })
	return files, err
}

// dropDamaged takes the files that are missing or cannot be decoded out of the manifest.
func (d *Destination) dropDamaged(ctx context.Context) (err error) {
	m := &d.manifest
	for i := range m.Entries {
		if m.Entries[i].Files, err = undamaged[entryRow](ctx, d, m.Entries[i].Files); err != nil {
			return err
		}
	}
	if m.Events, err = undamaged[eventRow](ctx, d, m.Events); err != nil {
		return err
	}
	if m.Removals, err = undamaged[removalRow](ctx, d, m.Removals); err != nil {
		return err
	}
	for _, f := range slices.Concat(m.Embeddables, m.Versions, m.Experiments, m.History) {
		_, _, err := d.read(ctx, f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // the next sync writes all four again
			m.Embeddables, m.Versions, m.Experiments, m.History, m.Position.Project = []file{}, []file{}, []file{}, []file{}, ""
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// undamaged returns the files that can be read.
func undamaged[T row](ctx context.Context, d *Destination, files []file) ([]file, error) {
	good := []file{}
	for _, f := range files {
		data, _, err := d.read(ctx, f.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, damage := range parquetfile.Rows[T](bytes.NewReader(data)) {
			err = errors.Join(err, damage)
		}
		if err == nil {
			good = append(good, f)
		}
	}
	return good, nil
}

// SetVerified stores the result in a file next to the manifest.
func (d *Destination) SetVerified(ctx context.Context, v replicate.Verified) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return d.write(ctx, verifiedName, append(data, '\n'))
}

// Status reads the manifest and what SetVerified stored.
func (d *Destination) Status(ctx context.Context) (s replicate.Status, err error) {
	var m manifest
	if err := d.decode(ctx, manifestName, &m); err != nil {
		return s, err
	}
	s = replicate.Status{ProjectID: m.ProjectID, Position: m.Position, Rewritten: &m.Rewritten}
	if err := d.decode(ctx, verifiedName, &s.Verified); !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	return s, nil
}

// decode reads a file of JSON.
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
