package replicate

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
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/lectern-dev/lectern/client"
)

// Verifiable is a copy that [Verify] can compare with its source.
type Verifiable interface {
	Destination
	// Look returns the state of the copy at this moment, and its position. It takes no lock, so another process may write
	// meanwhile.
	Look(ctx context.Context) (State, Position, error)
	// Mend makes the copy equal to its source, in one commit. The copy is open.
	Mend(ctx context.Context, m *Mending) error
	// SetVerified stores the result of a verification with the copy. It does not need Open.
	SetVerified(ctx context.Context, v Verified) error
	// Status returns what the copy says of itself, even if it has another source. It does not need Open.
	Status(ctx context.Context) (Status, error)
}

// Status has what a copy says of itself.
type Status struct {
	ProjectID string   `json:"project_id"`
	Position  Position `json:"position"`
	Verified  Verified `json:"verified"`
	// Rewritten counts the files that erasures have rewritten since the copy began; nil if the copy has no files.
	Rewritten *int `json:"files_rewritten"`
}

// State is a state of a copy that does not change while it is read.
type State interface {
	// History reports whether rows stay that a later row of the same key, or a removal, has replaced.
	History() bool
	// Rows returns all rows of entries and events in any order, and the removals if the copy has history. An error is the last
	// pair. A [Temporary] one says that the copy has changed too much, so that the caller must look again.
	Rows(ctx context.Context) iter.Seq2[Row, error]
	// Stored returns changes of the feed as Rows returns them.
	Stored(ctx context.Context, changes []client.Change) ([]Row, error)
	// Tables returns all other tables, after Rows has ended. p is the project as the source has it.
	Tables(ctx context.Context, p *Project) []Table
	// NotCompared names what neither Rows nor Tables have.
	NotCompared(ctx context.Context) ([]string, error)
	// Close ends the use of the state.
	Close() error
}

// Row is a row of a change.
type Row struct {
	client.Change
	// Columns has the values that the row has for keys of entry_data, if the copy stores such values apart.
	Columns string
}

// Table is a table of a copy, and what should be in it.
type Table struct {
	// Kind is the Type of the rows' keys.
	Kind string
	// Copy has the rows of the copy. Source is nil if the source's rows are unknown.
	Copy, Source iter.Seq2[Record, error]
}

// Record is a row of a [Table]. Values are equal if their JSON is.
type Record struct {
	ID     string
	Values any
}

// Records returns the rows of a table. It returns nil for nil.
func Records[T any](list iter.Seq2[T, error], record func(T) Record) iter.Seq2[Record, error] {
	if list == nil {
		return nil
	}
	return func(yield func(Record, error) bool) {
		for one, err := range list {
			r := Record{}
			if err == nil {
				r = record(one)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Key identifies a row.
type Key struct {
	Type client.ChangeType `json:"change"` // or the Kind of a [Table]
	ID   string            `json:"key"`    // such as the entry_id or event_key
}

// Mending makes a copy equal to its source.
type Mending struct {
	// Keys are those of the rows to remove.
	Keys map[Key]Fault
	// Put has the rows to add then, as changes of the feed in the order of their numbers. An error is the last pair.
	Put iter.Seq2[[]client.Change, error]
	// Project replaces what the copy has of it. Digest is that of [Position].
	Project *Project
	Digest  string
}

// Verified is the result of a verification.
type Verified struct {
	// At is the time of the result; zero if the copy was never verified.
	At time.Time `json:"at"`
	// Differences is the number of keys whose rows differed and were not mended.
	Differences int64 `json:"differences"`
}

// Fault names a fault of the rows of a key in a copy.
type Fault string

// The faults.
const (
	Missing Fault = "missing" // the copy lacks the row
	Doubled Fault = "doubled" // the copy has it more than once
	Stale   Fault = "stale"   // the copy has another state of it
	Extra   Fault = "extra"   // the source does not have it, or not any more
	Foreign Fault = "foreign" // the row has the id of another project
)

// Difference is a key whose rows in the copy differ from the source.
type Difference struct {
	Fault Fault `json:"fault"`
	Key
}

// mostNamed bounds the differences that are named, and mended, in one round. More are only counted.
const mostNamed = 100_000

// Verification configures [Verify].
type Verification struct {
	Options
	// Folder is for temporary files, of about 150 bytes for each record of the project.
	Folder string
	// Repair mends what differs.
	Repair bool
	// Name is called with each difference, up to [mostNamed] in a round. Its error ends the verification.
	Name func(Difference) error
}

// Findings are the result of [Verify].
type Findings struct {
	// Counts has the number of differences by fault, as far as they are named.
	Counts map[Fault]int64
	// Left is how many there still are.
	Left int64
	// NotCompared names what was not compared.
	NotCompared []string
}

// Verify compares a copy with its source. With Repair it mends what differs and compares again, until nothing differs. A
// repair that ends early leaves the copy as it was, or mended.
//
// It reads a state of the copy, and then the whole feed. If the feed shows a row with a number after the state's position,
// the row has changed since, and tells nothing. The project's other records have no numbers: Verify compares them if the source
// still has those of the copy's last batch. Verify writes a short record for each row and change. The hash of
// its entry selects one of some files. Then Verify compares the records of one file at a time in memory.
func Verify(ctx context.Context, o Verification) (found Findings, err error) {
	to, ok := o.Destination.(Verifiable)
	if !ok {
		return found, errors.New("this kind of copy cannot be verified")
	}
	o.Note = Once(o.Note)
	var retry retries
	for {
		v := &verification{Verification: o, to: to, seed: maphash.MakeSeed(), faults: map[Key]Fault{}}
		if err := v.round(ctx); err != nil {
			if err := retry.after(ctx, &o.Options, err); err != nil {
				return found, err
			}
			continue
		}
		before := found.Left
		found.NotCompared = v.notCompared
		if found.Left = int64(len(v.faults)) + v.more; found.Counts == nil {
			found.Counts = map[Fault]int64{}
			for _, fault := range v.faults {
				found.Counts[fault]++
			}
		} else if before == found.Left {
			return found, errors.New("the repair does not help; make a new copy")
		}
		if found.Left == 0 || !o.Repair {
			return found, to.SetVerified(ctx, Verified{At: time.Now().UTC().Truncate(time.Second), Differences: found.Left})
		}
	}
}

// verification is one comparison of a state with the feed.
type verification struct {
	Verification
	to   Verifiable
	seed maphash.Seed

	at          Position      // of the state
	faults      map[Key]Fault // at most mostNamed
	more        int64         // differences beyond
	notCompared []string
	project     *Project // as the source has it, with its digest
	digest      string
}

// round compares once, and names and mends what differs. It mends even if nothing differs. The project's other records may be
// older than those of the source, and views of the copy may be missing.
func (v *verification) round(ctx context.Context) (err error) {
	if v.Repair {
		if _, err := v.to.Open(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, v.to.Close()) }()
	}
	if err := v.compare(ctx); err != nil {
		return err
	}
	for _, key := range slices.SortedFunc(maps.Keys(v.faults), func(a, b Key) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID)) }) {
		if err := v.Name(Difference{v.faults[key], key}); err != nil {
			return err
		}
	}
	if !v.Repair {
		return nil
	}
	m := &Mending{Keys: v.faults, Put: func(yield func([]client.Change, error) bool) {
		for changes, err := range v.feed(ctx) {
			changes = slices.DeleteFunc(changes, func(c client.Change) bool {
				return c.Seq > v.at.Seq || v.faults[keyOf(&c)] == ""
			})
			if (len(changes) > 0 || err != nil) && !yield(changes, err) {
				return
			}
		}
	}, Project: v.project, Digest: v.digest}
	return v.to.Mend(ctx, m)
}

// keyOf returns the key of the row of a change.
func keyOf(c *client.Change) Key {
	switch c.Type {
	case client.EntryChanged:
		return Key{c.Type, c.Entry.EntryID}
	case client.EventAdded:
		return Key{c.Type, c.Event.EventKey}
	}
	return Key{c.Type, c.Removal.EntryID}
}

// feed yields the pages of the whole feed.
func (v *verification) feed(ctx context.Context) iter.Seq2[[]client.Change, error] {
	return func(yield func([]client.Change, error) bool) {
		limits := v.to.Limits()
		pages := newPages(&v.Options, client.ChangeQuery{}, min(v.PageSize, limits.Changes), limits.Bytes)
		for cursor := ""; ; {
			p, err := pages.read(ctx, cursor, 0)
			if err == nil {
				err = v.Source.removed(&p, v.at)
			}
			if !yield(p.Changes, err) || err != nil || p.Current {
				return
			}
			cursor = p.NextCursor
		}
	}
}

// record stands for a row in the files.
type record struct {
	Key
	Entry, Digest   uint64
	Seq             int64
	Copied, Foreign bool
	Erased          bool // it is a removal that concerns a person
}

// parts is the number of files.
const parts = 256

// compare sets the number of differences, and the faults of their keys.
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
		_ = os.Remove(files[i].Name()) // the open file stays, and a killed process leaves nothing; Windows refuses it
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
	for c, err := range state.Rows(ctx) {
		if err == nil {
			err = put(&c, true)
		}
		if err != nil {
			return err
		}
	}
	for changes, err := range v.feed(ctx) {
		if err != nil {
			return err
		}
		rows, err := state.Stored(ctx, changes)
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

// tables compares the other tables.
func (v *verification) tables(ctx context.Context, state State) (err error) {
	if v.project, v.digest, err = v.readProject(ctx); err != nil {
		return err
	}
	changed := v.digest != v.at.Project
	for _, t := range state.Tables(ctx, v.project) {
		if changed && t.Kind != FileKind && v.Repair {
			continue // Mend writes it again
		}
		if t.Source == nil || changed && t.Kind != FileKind {
			v.notCompared = append(v.notCompared, fmt.Sprintf("rows of the kind %s, which have changed since the copy's last batch, or which the key may not read", t.Kind))
			continue
		}
		if err := v.table(t); err != nil {
			return err
		}
	}
	return nil
}

// FileKind is the Kind of a table of the files of a copy.
const FileKind = "file"

// table compares one table.
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

// fault notes a fault of a key.
func (v *verification) fault(key Key, fault Fault) {
	_, twice := v.faults[key] // the row names another entry, so its change is in another file
	switch {
	case twice && fault != Doubled:
		v.faults[key] = Stale
	case len(v.faults) < mostNamed:
		v.faults[key] = fault
	default:
		v.more++
	}
}

// record makes the record of a row.
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

// stored returns a time as all copies store it.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// rows are the rows of a key.
type rows struct {
	feed, copy record // the newest, or zero
	copies     int    // of the newest row if the copy has history, else of all rows
}

// part compares the rows of some entries.
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
		r.Key = Key{} // its text is in keys once
		switch {
		case !r.Copied: // the feed shows a key again if it changed meanwhile
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
		if fault := k.fault(removal, v.at.Seq, history); fault != "" {
			v.fault(key, fault)
		}
	}
	return nil
}

// fault returns what is wrong with the rows of a key, or "". removal has the removals of the entry, which may be the rows
// themselves.
func (k *rows) fault(removal *rows, at int64, history bool) Fault {
	fed := k.feed.Seq > 0
	if k == removal {
		switch {
		case k.copies > 0 && k.copy.Seq > k.feed.Seq:
			return Extra
		case !history || k.feed.Seq > at:
			return "" // the copy has no list of removals, or this one is newer
		case k.copies == 0 || k.copy.Seq < k.feed.Seq:
			return Missing
		case k.copies > 1:
			return Doubled
		case k.copy.Digest != k.feed.Digest:
			return Stale
		}
		return ""
	}
	copied := k.copies > 0 && (removal.copies == 0 || k.copy.Seq >= removal.copy.Seq)
	switch changed := max(k.feed.Seq, removal.feed.Seq) > at; {
	case k.copies > 0 && removal.feed.Erased && k.copy.Seq < removal.feed.Seq && removal.feed.Seq <= at:
		return Extra // even if the copy's removals hide the row
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
	case copied && (k.copy.Seq != k.feed.Seq || k.copy.Digest != k.feed.Digest):
		return Stale
	}
	return ""
}
