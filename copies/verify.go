package copies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// mostNamed is the greatest number of differences that Verify names and repairs in one round. Verify only counts
// further differences.
const mostNamed = 100_000

// Verification configures [Verify]: the copy and its source, and whether to repair the copy.
type Verification struct {
	Options
	// Folder is a folder for temporary files, which take about 150 bytes for each record of the project. "" is the
	// folder of the system.
	Folder string
	// Repair lets Verify open the copy and repair the differences. Without Repair, Verify names the differences and
	// only stores its result.
	Repair bool
	// Name is required. Verify calls Name with each difference, but at most 100,000 times in a round. If Name returns
	// an error, Verify ends with the error.
	Name func(Difference) error
	// careful lets Verify fail if the source has lost over half of the copy.
	careful bool
}

// Findings are the result of [Verify]: which differences it found, and how many remain.
type Findings struct {
	// Counts has the number of differences by fault in the first round, without those that Verify only counts.
	Counts map[Fault]int64
	// Left is the number of differences that remain after all repairs.
	Left int64
	// NotCompared describes the contents of the copy that Verify did not compare.
	NotCompared []string
}

// Verify compares a copy with its source, and stores the result with the copy. With Repair, Verify repairs the
// differences and compares again, until nothing differs. A repair that does not help is an error.
//
// Verify reads a snapshot of the copy, and then the whole feed. Changes after the snapshot's position are no
// differences. Without Repair, Verify compares the records that have no feed only if they have not changed at the
// source since the copy's last batch.
//
// If the source has lost the copy's position, Verify compares with the state of the source after the last change that was
// not lost. The repair then puts aside the rows that only the copy has, and sets the copy's position to that change.
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

// verification is one round of [Verify]: one comparison of a snapshot of the copy with the feed.
type verification struct {
	Verification
	to   Verifiable
	seed maphash.Seed

	at          Position      // position of the snapshot, or the last one before a loss
	loss        *Loss         // nil if the source has the position of the snapshot
	copied      int64         // number of entries and events in the copy
	gone        int64         // number of those that the source does not have
	faults      map[Key]Fault // at most mostNamed
	more        int64         // number of differences beyond mostNamed
	notCompared []string
	project     *Project // records of the source that have no feed; digest is their digest
	digest      string
}

// round compares once, names the differences, and repairs them if Repair is set. round repairs even if nothing
// differs, because the copy's records without a feed may be old, and views may be missing.
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
	if v.loss != nil {
		if err := v.announce(); err != nil {
			return err
		}
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
		for p, err := range v.feed(ctx, client.ChangeQuery{}, Position{}, v.at) {
			changes := slices.DeleteFunc(p.Changes, func(c client.Change) bool {
				return c.Seq > v.at.Seq || v.faults[keyOf(&c)] == ""
			})
			if (len(changes) > 0 || err != nil) && !yield(changes, err) {
				return
			}
		}
	}, Project: v.project, Digest: v.digest, Loss: v.loss}
	return v.to.Mend(ctx, m)
}

// findLoss asks the source for the position of the snapshot. If the source has lost the position, the comparison is with
// the last one before the loss.
func (v *verification) findLoss(ctx context.Context) error {
	if v.at.Seq == 0 {
		return nil
	}
	_, err := newPages(&v.Options, client.ChangeQuery{}, 1, v.Destination.Limits().Bytes).read(ctx, v.at, 0)
	lost, ok := errors.AsType[*client.HistoryLostError](err)
	if !ok {
		return err
	}
	v.loss = &Loss{HistoryLostError: lost, Aside: map[Key]bool{}, text: v.Source.loses(lost, v.at)}
	v.at.Cursor, v.at.Seq = "", lost.After
	return nil
}

// announce says what the source has lost, and which entries are in the source again. The error of a careful verification
// says that over half of the copy would go.
func (v *verification) announce() error {
	v.loss.Last = v.more == 0
	if v.careful && 2*v.gone > v.copied {
		return fmt.Errorf("%s, with %d of the copy's %d rows: an old backup was restored there, or the data of another deployment is served there; the copy stays as it is, and sync --verify --repair mends it: %w",
			v.loss.text, v.gone, v.copied, v.loss.HistoryLostError)
	}
	v.Note("Note that " + v.loss.text + ".")
	var again []string
	for key, fault := range v.faults {
		if key.Type == client.EntryChanged && fault == Missing {
			again = append(again, key.ID)
		}
	}
	if len(again) > 0 {
		slices.Sort(again)
		count := "1 entry was removed after that, and is"
		if len(again) > 1 {
			count = fmt.Sprintf("%d entries were removed after that, and are", len(again))
		}
		v.Note(fmt.Sprintf("%s in the source again: %s", count, strings.Join(again[:min(len(again), mostListed)], ", ")))
	}
	return nil
}

// mostListed is the greatest number of entries that are listed in a note.
const mostListed = 100

// keyOf returns the key of the row that a change of the feed makes in a copy.
func keyOf(c *client.Change) Key {
	switch c.Type {
	case client.EntryChanged:
		return Key{c.Type, c.Entry.EntryID}
	case client.EventAdded:
		return Key{c.Type, c.Event.EventKey}
	}
	return Key{c.Type, c.Removal.EntryID}
}

// feed returns an iterator over the pages of the feed after from, until no more changes are there. at is the position
// of the copy. An error is the last pair.
func (o *Options) feed(ctx context.Context, q client.ChangeQuery, from, at Position) iter.Seq2[page, error] {
	return func(yield func(page, error) bool) {
		limits := o.Destination.Limits()
		pages := newPages(o, q, min(o.PageSize, limits.Changes), limits.Bytes)
		for {
			p, err := pages.read(ctx, from, 0)
			if err == nil {
				err = o.Source.removed(&p, at)
			}
			if !yield(p, err) || err != nil || p.Current {
				return
			}
			from.Cursor = p.NextCursor
		}
	}
}
