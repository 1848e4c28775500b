package copies

import (
	"bufio"
	"cmp"
	"context"
	"encoding/gob"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/lectern-dev/lectern/client"
)

// record is the digest of one row of the copy, or of one change of the feed. The temporary files of a verification
// have records.
type record struct {
	Key
	Entry, Digest   uint64
	Seq             int64
	Copied, Foreign bool
	Erased          bool // the row is a removal with the reason "erased"
}

// parts is the number of temporary files. All rows of an entry are in the same file, so that one file at a time fits
// into memory.
const parts = 256

// compare compares the copy with the project, and notes a fault for each key that differs. compare writes the digests
// of all rows to temporary files, and compares one file at a time.
func (v *verification) compare(ctx context.Context) (err error) {
	folder, err := os.MkdirTemp(v.Folder, "lectern-verify-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var files [parts]*os.File
	var buffers [parts]*bufio.Writer
	var out [parts]*gob.Encoder
	for i := range files {
		if files[i], err = os.Create(filepath.Join(folder, fmt.Sprint(i))); err != nil {
			return err
		}
		defer files[i].Close()
		_ = os.Remove(files[i].Name()) // the open file stays usable, and a killed process leaves no file; fails on Windows
		buffers[i] = bufio.NewWriterSize(files[i], 8<<10)
		out[i] = gob.NewEncoder(buffers[i])
	}
	put := func(c *Row, copied bool) error {
		r, err := v.record(c, copied)
		return errors.Join(err, out[r.Entry%parts].Encode(r))
	}
	state, at, err := v.to.Look(ctx)
	if err != nil {
		return err
	}
	v.at = at
	defer func() { err = errors.Join(err, state.Close()) }()
	if err := v.findLoss(ctx); err != nil {
		return err
	}
	for c, err := range state.Rows(ctx) {
		if err == nil {
			err = put(&c, true)
		}
		if err != nil {
			return err
		}
	}
	for p, err := range v.feed(ctx, client.ChangeQuery{}, Position{}, v.at) {
		if err != nil {
			return err
		}
		rows, err := state.Stored(ctx, p.Changes)
		if err != nil {
			return err
		}
		for i := range rows {
			if err := put(&rows[i], false); err != nil {
				return err
			}
		}
	}
	for i, f := range files {
		if err := buffers[i].Flush(); err != nil {
			return err
		}
		if err := v.part(gob.NewDecoder(bufio.NewReader(io.NewSectionReader(f, 0, math.MaxInt64))), state.History()); err != nil {
			return err
		}
	}
	if v.notCompared, err = state.NotCompared(ctx); err != nil {
		return err
	}
	return v.tables(ctx, state)
}

// tables compares the records that have no feed, such as embeddables, table by table. A table that cannot be compared
// is added to notCompared, unless its records have changed and a repair follows.
func (v *verification) tables(ctx context.Context, state State) (err error) {
	if v.project, v.digest, err = v.readProject(ctx, ""); err != nil {
		return err
	}
	changed := v.digest != v.at.Project
	for _, t := range state.Tables(ctx, v.project) {
		if changed && !t.Own && v.Repair {
			continue // Mend writes the table again
		}
		if t.Source == nil || changed && !t.Own {
			v.notCompared = append(v.notCompared, fmt.Sprintf("rows of the kind %s, which have changed since the copy's last batch, or which the key may not read", t.Kind))
			continue
		}
		if err := v.table(t); err != nil {
			return err
		}
	}
	return nil
}

// table compares the records of one table in the copy with the records at the source, and notes a fault for each that
// differs.
func (v *verification) table(t Table) error {
	digest := func(r Record) (uint64, error) {
		text, err := stdjson.Marshal(r.Values)
		return maphash.Bytes(v.seed, text), err
	}
	source := map[string]uint64{}
	for r, err := range t.Source {
		if err == nil {
			source[r.ID], err = digest(r)
		}
		if err != nil {
			return err
		}
	}
	copied := map[string]bool{}
	for r, err := range t.Copy {
		if err != nil {
			return err
		}
		got, err := digest(r)
		if err != nil {
			return err
		}
		want, ok := source[r.ID]
		key := Key{client.ChangeType(t.Kind), r.ID}
		switch {
		case copied[r.ID]:
			v.fault(key, Doubled)
		case !ok:
			v.fault(key, Extra)
		case got != want:
			v.fault(key, Stale)
		}
		copied[r.ID] = true
	}
	for id := range source {
		if !copied[id] {
			v.fault(Key{client.ChangeType(t.Kind), id}, Missing)
		}
	}
	return nil
}

// fault notes the fault of a key. A second fault of the same key makes the key Stale, unless the second fault is
// Doubled. After mostNamed keys, fault only counts further faults.
func (v *verification) fault(key Key, fault Fault) {
	_, twice := v.faults[key] // a key has two faults if its row in the copy names another entry than its change does
	switch {
	case twice && fault != Doubled:
		v.faults[key] = Stale
	case len(v.faults) < mostNamed:
		v.faults[key] = fault
	default:
		v.more++
	}
}

// record makes the record of a row for the temporary files. copied reports that the row comes from the copy, not from
// the feed.
func (v *verification) record(c *Row, copied bool) (r record, err error) {
	r = record{Key: keyOf(&c.Change), Seq: c.Seq, Copied: copied}
	if copied {
		v.Mask.clear(&c.Change)
	}
	entry, project := r.ID, v.Source.ProjectID
	if e := c.Entry; e != nil {
		project, e.CreatedAt, e.UpdatedAt = e.ProjectID, stored(e.CreatedAt), stored(e.UpdatedAt)
	} else if e := c.Event; e != nil {
		entry, project, e.Timestamp = e.EntryID, e.ProjectID, stored(e.Timestamp)
	} else if e := c.Removal; e != nil {
		e.RemovedAt, r.Erased = stored(e.RemovedAt), e.Reason == client.Erased
	}
	r.Entry, r.Foreign = maphash.String(v.seed, entry), project != v.Source.ProjectID
	var h maphash.Hash
	h.SetSeed(v.seed)
	err = json.MarshalWrite(&h, []any{c.Entry, c.Event, c.Removal, c.Columns})
	r.Digest = h.Sum64()
	return r, err
}

// stored returns a time as all copies store times: in UTC, with microseconds.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// rows are the records of one key in the feed and in the copy.
type rows struct {
	feed, copy record // the newest records; zero for none
	copies     int    // number of rows in the copy: those with the newest Seq if the copy has history, else all
}

// part compares the records in one temporary file. history reports that the copy keeps older rows of a key.
func (v *verification) part(in *gob.Decoder, history bool) error {
	keys := map[Key]*rows{}
	removals := map[uint64]*rows{} // by entry
	for {
		var r record
		if err := in.Decode(&r); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		k := keys[r.Key]
		if k == nil {
			k = &rows{}
			keys[r.Key] = k
		}
		if r.Type == client.EntryRemoved {
			removals[r.Entry] = k
		}
		r.Key = Key{} // keys has the key already, which saves memory
		switch {
		case !r.Copied: // the feed has a key twice if the key changed during the verification
			k.feed = r
		case !history || k.copies == 0 || r.Seq == k.copy.Seq:
			k.copy, k.copies = r, k.copies+1
		case r.Seq > k.copy.Seq:
			k.copy, k.copies = r, 1
		}
	}
	for key, k := range keys {
		removal := removals[cmp.Or(k.feed.Entry, k.copy.Entry)]
		if removal == nil {
			removal = &rows{}
		}
		fault := k.fault(removal, v.at.Seq, history)
		if fault != "" {
			v.fault(key, fault)
		}
		if key.Type == client.EntryRemoved || k.copies == 0 || k.hidden(removal) {
			continue
		}
		v.copied++
		if fault == Extra {
			v.gone++
		}
		if v.loss != nil && k.copy.Seq > v.at.Seq && k.copy.Digest != k.feed.Digest && !removal.feed.Erased && v.faults[key] != "" {
			v.loss.Aside[key] = true
		}
	}
	return nil
}

// hidden reports whether a removal in the copy hides the key's row.
func (k *rows) hidden(removal *rows) bool {
	return k.copies > 0 && removal.copies > 0 && k.copy.Seq < removal.copy.Seq
}

// fault returns what is wrong with the rows of a key, or "" if nothing is. removal has the removals of the key's
// entry. If the key is a removal itself, removal is k. at is the number of the copy's last change.
func (k *rows) fault(removal *rows, at int64, history bool) Fault {
	fed := k.feed.Seq > 0
	if k == removal {
		switch {
		case k.copies > 0 && k.copy.Seq > min(k.feed.Seq, at):
			return Extra
		case !history || k.feed.Seq > at:
			return "" // the copy has no list of removals, or this removal is newer than the copy
		case k.copies == 0 || k.copy.Seq < k.feed.Seq:
			return Missing
		case k.copies > 1:
			return Doubled
		case k.copy.Digest != k.feed.Digest:
			return Stale
		}
		return ""
	}
	copied := k.copies > 0 && !k.hidden(removal)
	switch changed := max(k.feed.Seq, removal.feed.Seq) > at; {
	case k.copies > 0 && removal.feed.Erased && k.copy.Seq < removal.feed.Seq && removal.feed.Seq <= at:
		return Extra // even if the copy's removals hide the row
	case k.hidden(removal) && !fed && removal.copy.Seq > max(removal.feed.Seq, at):
		return Extra // which the removal of a removal that never was would show again
	case changed && (!copied || k.copy.Seq <= at):
		return ""
	case copied && k.copy.Foreign:
		return Foreign
	case copied && !fed:
		return Extra
	case !copied && fed && k.feed.Seq > removal.feed.Seq:
		return Missing
	case copied && k.copies > 1:
		return Doubled
	case copied && (k.copy.Seq != k.feed.Seq || k.copy.Seq > at || k.copy.Digest != k.feed.Digest):
		return Stale
	}
	return ""
}
