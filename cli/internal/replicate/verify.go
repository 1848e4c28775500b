package replicate

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/lectern-dev/lectern/client"
)

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
