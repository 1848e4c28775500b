package replicate

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
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
	// Look returns the state of the copy at this moment. It takes no lock, so another process may write meanwhile.
	Look(ctx context.Context) (State, error)
	// Mend removes rows and adds others in one commit. The copy is open.
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
	// Position is that of the state.
	Position() Position
	// History reports whether rows stay that a later row of the same key, or a removal, has replaced.
	History() bool
	// Rows returns all rows in any order, and the removals if the copy has history. An error is the last pair. A
	// [Temporary] one says that the copy has changed too much, so that the caller must look again.
	Rows(ctx context.Context) iter.Seq2[client.Change, error]
	// Stored returns changes of the feed as Rows returns them.
	Stored(ctx context.Context, changes []client.Change) ([]client.Change, error)
	// Close ends the use of the state.
	Close() error
}

// Mending makes a copy equal to its source.
type Mending struct {
	// Entries and Events are the keys of rows to remove, and Removals the entries whose removals to remove.
	Entries, Events, Removals map[string]bool
	// Put has the rows to add then, as changes of the feed. An error is the last pair.
	Put iter.Seq2[[]client.Change, error]
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
	// Type is the type of the change whose row differs.
	Type client.ChangeType `json:"change"`
	// Key is the entry_id or event_key.
	Key string `json:"key"`
}

// mostNamed bounds the differences that are named, and mended, in one round. More are only counted.
const mostNamed = 100_000

// Verification configures [Verify].
type Verification struct {
	Options
	// Folder is for temporary files, of about 70 bytes for each record of the project.
	Folder string
	// Repair mends what differs.
	Repair bool
	// Name is called with each difference, up to [mostNamed] in a round. Its error ends the verification.
	Name func(Difference) error
}

// Findings are the result of [Verify].
type Findings struct {
	// Counts has the number of differences by fault.
	Counts map[Fault]int64
	// Left is how many there still are.
	Left int64
}

// Verify compares a copy with its source. With Repair it mends what differs and compares again, until nothing differs.
//
// It reads a state of the copy, and then the whole feed. If the feed shows a row with a number after the state's position,
// the row has changed since, and tells nothing. Verify writes a short record for each row and change. The hash of
// its entry selects one of some files. Then Verify compares the records of one file at a time in memory.
func Verify(ctx context.Context, o Verification) (found Findings, err error) {
	to, ok := o.Destination.(Verifiable)
	if !ok {
		return found, errors.New("this kind of copy cannot be verified")
	}
	if o.Repair {
		if _, err := to.Open(ctx); err != nil {
			return found, err
		}
		defer func() { err = errors.Join(err, to.Close()) }()
	}
	var retry retries
	for {
		v := &verification{Verification: o, to: to, seed: maphash.MakeSeed(), counts: map[Fault]int64{}, faults: map[uint64]Fault{}}
		err := v.round(ctx)
		if err == nil {
			before := found.Left
			if found.Left = v.differences; found.Counts == nil {
				found.Counts = v.counts
			} else if before == found.Left {
				return found, errors.New("the repair does not help; make a new copy")
			}
			if found.Left > 0 && o.Repair {
				continue
			}
			return found, to.SetVerified(ctx, Verified{At: time.Now().UTC().Truncate(time.Second), Differences: found.Left})
		}
		if err := retry.after(ctx, &o.Options, err); err != nil {
			return found, err
		}
	}
}

// verification is one comparison of a state with the feed.
type verification struct {
	Verification
	to   Verifiable
	seed maphash.Seed

	state       State
	at          Position // of the state
	differences int64
	counts      map[Fault]int64
	faults      map[uint64]Fault // by key, at most mostNamed
}

// record stands for a row or a change in the files.
type record struct {
	key, entry, digest uint64
	seq                int64
	origin             int8
}

// recordSize is the number of bytes of a record.
const recordSize = 33

// write writes the record.
func (r *record) write(out *bufio.Writer) error {
	b := out.AvailableBuffer()
	for _, n := range []uint64{r.key, r.entry, r.digest, uint64(r.seq)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	_, err := out.Write(append(b, byte(r.origin)))
	return err
}

// read reads a record. At the end of in, the error is io.EOF.
func (r *record) read(in io.Reader) error {
	var b [recordSize]byte
	if _, err := io.ReadFull(in, b[:]); err != nil {
		return err
	}
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	*r = record{n(0), n(1), n(2), int64(n(3)), int8(b[recordSize-1])}
	return nil
}

// The origins of records.
const (
	fromCopy int8 = iota
	fromFeed
	foreign // fromCopy, with the id of another project
)

// parts is the number of files.
const parts = 128

// record hashes a change. A removal has the key of its entry, but another than the entry's row.
func (v *verification) record(c *client.Change, origin int8) (record, error) {
	entry, project := "", v.Source.ProjectID
	var content any
	switch c.Type {
	case client.EntryChanged:
		e := *c.Entry
		e.CreatedAt, e.UpdatedAt = stored(e.CreatedAt), stored(e.UpdatedAt)
		entry, project, content = e.EntryID, e.ProjectID, &e
	case client.EventAdded:
		e := *c.Event
		e.Timestamp = stored(e.Timestamp)
		entry, project, content = e.EntryID, e.ProjectID, &e
	case client.EntryRemoved:
		entry = c.Removal.EntryID
	}
	if origin == fromCopy && project != v.Source.ProjectID {
		origin = foreign
	}
	r := record{key: v.key(c), entry: maphash.String(v.seed, entry), seq: c.Seq, origin: origin}
	if content != nil {
		var h maphash.Hash
		h.SetSeed(v.seed)
		if err := json.MarshalWrite(&h, content); err != nil {
			return r, err
		}
		r.digest = h.Sum64()
	}
	return r, nil
}

// stored returns a time as all copies store it.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// key hashes the type and the key of a change.
func (v *verification) key(c *client.Change) uint64 {
	return maphash.String(v.seed, string(c.Type)+"\n"+keyOf(c))
}

// keyOf returns the key of a change among those of its type.
func keyOf(c *client.Change) string {
	switch c.Type {
	case client.EntryChanged:
		return c.Entry.EntryID
	case client.EventAdded:
		return c.Event.EventKey
	}
	return c.Removal.EntryID
}

// look opens a state of the copy for the time of do.
func (v *verification) look(ctx context.Context, do func() error) (err error) {
	if v.state, err = v.to.Look(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.state.Close()) }()
	v.at = v.state.Position()
	return do()
}

// feed yields the pages of the whole feed.
func (v *verification) feed(ctx context.Context) iter.Seq2[[]client.Change, error] {
	return func(yield func([]client.Change, error) bool) {
		limits := v.to.Limits()
		pages := newPages(v.Client, v.Source.ProjectID, client.ChangeQuery{}, min(v.PageSize, limits.Changes), limits.Bytes)
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

// round compares once, and names and mends what differs.
func (v *verification) round(ctx context.Context) error {
	if err := v.compare(ctx); err != nil || v.differences == 0 {
		return err
	}
	m := &Mending{Entries: map[string]bool{}, Events: map[string]bool{}, Removals: map[string]bool{}}
	of := map[client.ChangeType]map[string]bool{client.EntryChanged: m.Entries, client.EventAdded: m.Events, client.EntryRemoved: m.Removals}
	var list []Difference
	name := func(c *client.Change, fault Fault) {
		if key := keyOf(c); fault != "" && !of[c.Type][key] {
			of[c.Type][key] = true
			list = append(list, Difference{fault, c.Type, key})
		}
	}
	err := v.look(ctx, func() error {
		for c, err := range v.state.Rows(ctx) {
			if err != nil {
				return err
			}
			if fault := v.faults[v.key(&c)]; fault != Missing {
				name(&c, fault)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for changes, err := range v.feed(ctx) {
		if err != nil {
			return err
		}
		for i := range changes {
			if fault := v.faults[v.key(&changes[i])]; fault == Missing {
				name(&changes[i], fault)
			}
		}
	}
	for _, d := range list { // now, so that a repeated round names none twice
		if err := v.Name(d); err != nil {
			return err
		}
	}
	if !v.Repair {
		return nil
	}
	m.Put = func(yield func([]client.Change, error) bool) {
		for changes, err := range v.feed(ctx) {
			changes = slices.DeleteFunc(changes, func(c client.Change) bool {
				return c.Seq > v.at.Seq || c.Type == client.EntryRemoved || !of[c.Type][keyOf(&c)]
			})
			if (len(changes) > 0 || err != nil) && !yield(changes, err) {
				return
			}
		}
	}
	return v.to.Mend(ctx, m)
}

// compare sets the number of differences, and the faults of their keys.
func (v *verification) compare(ctx context.Context) error {
	folder, err := os.MkdirTemp(v.Folder, "lectern-verify-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var files [parts]*os.File
	var out [parts]*bufio.Writer
	for i := range files {
		if files[i], err = os.Create(filepath.Join(folder, fmt.Sprint(i))); err != nil {
			return err
		}
		defer files[i].Close()
		out[i] = bufio.NewWriterSize(files[i], 16<<10)
	}
	put := func(c *client.Change, origin int8) error {
		r, err := v.record(c, origin)
		if err != nil {
			return err
		}
		return r.write(out[r.entry%parts])
	}
	err = v.look(ctx, func() error {
		for c, err := range v.state.Rows(ctx) {
			if err == nil {
				err = put(&c, fromCopy)
			}
			if err != nil {
				return err
			}
		}
		for changes, err := range v.feed(ctx) {
			if err != nil {
				return err
			}
			if changes, err = v.state.Stored(ctx, changes); err != nil {
				return err
			}
			for i := range changes {
				if err := put(&changes[i], fromFeed); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, f := range files {
		err := out[i].Flush()
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err == nil {
			err = v.part(bufio.NewReader(f))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rows are the rows of a key.
type rows struct {
	entry         uint64
	feed, copy    record // the newest
	fed, copied   bool
	copies        int // of the newest row if the copy has history, else of all rows
	ofOtherSource bool
}

// part compares the rows of some entries.
func (v *verification) part(in io.Reader) error {
	keys := map[uint64]*rows{}
	removals := map[uint64]uint64{} // the key of an entry's removal, by entry
	history := v.state.History()
	for {
		var r record
		if err := r.read(in); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		k := keys[r.key]
		if k == nil {
			k = &rows{entry: r.entry}
			keys[r.key] = k
		}
		if r.digest == 0 {
			removals[r.entry] = r.key
		}
		if r.origin == fromFeed { // it shows a key again if it changed meanwhile
			k.feed, k.fed = r, true
			continue
		}
		switch {
		case history && k.copied && r.seq < k.copy.seq:
			continue
		case history && k.copied && r.seq > k.copy.seq:
			k.copies = 0
		}
		k.copy, k.copied, k.ofOtherSource = r, true, r.origin == foreign
		k.copies++
	}
	for key, k := range keys {
		removal := &rows{}
		if of, ok := removals[k.entry]; ok {
			removal = keys[of]
		}
		if fault := k.fault(removal, v.at.Seq, key == removals[k.entry]); fault != "" {
			if before, ok := v.faults[key]; ok { // the row names another entry, so its change is in another file
				v.counts[before]--
				v.counts[Stale]++
				v.faults[key] = Stale
				continue
			}
			v.differences++
			v.counts[fault]++
			if len(v.faults) < mostNamed {
				v.faults[key] = fault
			}
		}
	}
	return nil
}

// fault returns what is wrong with the rows of a key, or "". removal has the removals of the entry, which may be the rows
// themselves.
func (k *rows) fault(removal *rows, at int64, isRemoval bool) Fault {
	copied := k.copied && (isRemoval || !removal.copied || k.copy.seq >= removal.copy.seq)
	switch changed := k.fed && k.feed.seq > at || removal.fed && removal.feed.seq > at; {
	case isRemoval && copied && (!k.fed || k.copy.seq > k.feed.seq):
		return Extra
	case isRemoval, changed && (!copied || k.copy.seq <= at):
		return "" // a removal without rows says nothing
	case copied && k.ofOtherSource:
		return Foreign
	case copied && !k.fed:
		return Extra
	case !copied && k.fed && k.feed.seq > removal.feed.seq:
		return Missing
	case copied && k.copies > 1:
		return Doubled
	case copied && (k.copy.seq != k.feed.seq || k.copy.digest != k.feed.digest):
		return Stale
	}
	return ""
}
