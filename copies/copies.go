// Package copies keeps a copy of a project up to date. [Run] reads the project's change feed page by page and gathers
// changes into batches. Run also copies the records that have no feed, as a whole when they have changed, if the
// [Destination] takes them. A Destination stores the position with each batch, so the next run continues after the last batch,
// even if a process was killed.
package copies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lectern-dev/lectern/client"
)

// Position is how far a copy has read the change feed. The zero value is the beginning of the feed.
type Position struct {
	// Cursor is the feed's cursor after the last batch; "" is after the change Seq, which is the beginning if Seq is 0.
	Cursor string `json:"cursor"`
	// Seq is the number of the last change that the copy has; 0 for none.
	Seq int64 `json:"seq"`
	// Project is the state of the [Project] that the copy has; "" if the copy has none.
	Project string `json:"project,omitempty"`
}

// Source identifies the project that a copy is made of. A run into a copy of another project fails.
type Source struct {
	// URL is the base URL of the API that the changes come from.
	URL string `json:"url"`
	// ProjectID is the id of the copied project.
	ProjectID string `json:"project_id"`
}

// Batch is a group of changes, in the order of their numbers, that a [Destination] gets at once.
type Batch struct {
	Changes []client.Change
	// Project has the records without a feed that replace those of the copy; nil if the copy keeps its records. A batch
	// may have a Project and no changes.
	Project *Project
	// Bytes is the size of the changes in the feed, in bytes.
	Bytes int
	// Position is the position in the feed after the changes of this batch.
	Position Position
	// Current reports that the feed had no more changes after this batch when the batch was read.
	Current bool
	// LastSeq is the number of the project's newest change when the end of the batch was read. Known is that number
	// when the beginning of the batch was read.
	LastSeq, Known int64
}

// Destination stores a copy, for example in Postgres or in Parquet files. [Run] does not call the methods of a
// Destination concurrently. A Destination marks errors that a retry may avoid with [Temporary] or [TemporaryFor].
type Destination interface {
	// Open locks the copy, creates the copy if it is missing, and returns the position of the last stored batch. A copy
	// of another project is an error, and so is the lock of another process. Some destinations have no lock.
	Open(ctx context.Context) (Position, error)
	// Apply stores a batch and the position after it: both in one commit, or the position last. A batch that is current
	// may have no changes.
	Apply(ctx context.Context, b *Batch) error
	// Traits returns what the destination takes and how long it is tried. The result never changes.
	Traits() Traits
	// Limits returns how large a batch may become before [Run] passes the batch to Apply.
	Limits() Limits
	// Close releases the lock and the connections of the copy.
	Close() error
}

// Receiver is a [Destination] that stores the changes in its own way. So the receiver itself must drop what the source has
// lost.
type Receiver interface {
	Destination
	// Lose tells the receiver what the source has lost. After Lose, [Run] sends everything from the beginning. Lose does
	// not change the stored position, so a run that is killed before its next batch calls Lose again.
	Lose(ctx context.Context, lost *client.HistoryLostError) error
}

// Traits are facts about a [Destination].
type Traits struct {
	// Project reports that the destination also takes the records that have no feed, such as embeddables and experiments.
	Project bool
	// Endless reports that no number of failed attempts should end a run, because only the user of the destination can
	// mend it.
	Endless bool
}

// Limits are the sizes at which a batch is full, and how long a batch waits to become full.
type Limits struct {
	// Changes is a number of changes and Bytes a number of bytes. A batch that has reached either number is full.
	Changes, Bytes int
	// Linger is the longest time that changes wait for further changes when the copy is current and follows the feed.
	Linger time.Duration
}

// Options configure [Run]: the client and the source to read from, the destination to write to, and what is copied.
type Options struct {
	Client      *client.Client
	Source      Source
	Destination Destination
	// Query selects the changes by its Types, and where a new copy starts by its After. The zero value copies all
	// changes from the beginning.
	Query client.ChangeQuery
	// Mask leaves out or hashes fields of all records that the destination gets. The destination must have the same
	// Mask.
	Mask *Mask
	// Follow lets [Run] wait for further changes when the copy is current, until ctx ends.
	Follow bool
	// PageSize is the greatest number of changes that one request asks for.
	PageSize int
	// Attempts is the greatest number of attempts in a row that fail with a temporary error of the destination,
	// including the first. [client.Forever] sets no bound.
	Attempts int
	// Progress, if set, is called with the progress of the run after each committed batch.
	Progress func(Progress)
	// Notify, if set, is called with the error before each wait for a destination that failed.
	Notify func(err error, wait time.Duration)
	// Note, if set, is called with a sentence for the user. [Run] calls Note once for each different text.
	Note func(text string)
}

// Progress is how much a run of [Run] has copied, for the user's display.
type Progress struct {
	// Changes and Bytes count the changes that this run committed, and their size in the feed.
	Changes, Bytes int64
	// Began is the number of the change at which the run began. Seq is the number of the last change in the copy, and
	// LastSeq that of the project's newest change.
	Began, Seq, LastSeq int64
	// Current reports that the copy had all changes at the last batch.
	Current bool
	// Verified is the last result of [Verify] on the copy, which another process may have made. A run that follows the
	// feed reads the result of a [Verifiable] copy, at most once a minute. Verified is zero otherwise.
	Verified Verified
}

// ErrRemoved is in the chain of [Run]'s error if the copy has changes, but the source has no changes of the project
// any more.
var ErrRemoved = errors.New("the project has no changes any more")

// removed returns an error with [ErrRemoved] in its chain if the source has no changes, but the copy has some. p is a
// page of the feed, and at is the copy's position.
func (s Source) removed(p *page, at Position) error {
	if p.Current && p.LastSeq == 0 && at.Seq > 0 {
		return fmt.Errorf("%w, although the copy has changes up to number %d: the project was removed at %s, or the data of another deployment is served there; the copy stays as it is",
			ErrRemoved, at.Seq, s.URL)
	}
	return nil
}

// lost returns err with the position of the copy if the source has lost that position, and nil otherwise.
func (s Source) lost(err error, at Position) error {
	lost, ok := errors.AsType[*client.HistoryLostError](err)
	if !ok {
		return nil
	}
	return fmt.Errorf("%s: %w", s.loses(lost, at), err)
}

// loses returns a sentence for the user about what the source has lost.
func (s Source) loses(lost *client.HistoryLostError, at Position) string {
	return fmt.Sprintf("the source at %s has lost its changes %s, for example by a restore of a backup, and the position %d is among them", s.URL, lost.Stretch(), at.Seq)
}

type temporaryError struct {
	error
	after time.Duration // how long a retry is useless
}

func (e temporaryError) Unwrap() error { return e.error }

// Temporary marks err as an error that a retry may avoid, such as a broken connection.
func Temporary(err error) error { return TemporaryFor(err, 0) }

// TemporaryFor marks err as an error that a retry may avoid, but not before the time after has passed.
func TemporaryFor(err error, after time.Duration) error { return temporaryError{err, after} }

// IsTemporary reports whether [Temporary] or [TemporaryFor] marked an error in the chain of err.
func IsTemporary(err error) bool {
	_, ok := errors.AsType[temporaryError](err)
	return ok
}

// Once returns a function that calls say with texts for the user, but with each text only once. If say is nil, the
// function does nothing. The function is not safe for concurrent use.
func Once(say func(text string)) func(text string) {
	said := map[string]bool{}
	return func(text string) {
		if say != nil && !said[text] {
			said[text] = true
			say(text)
		}
	}
}

const (
	firstWait   = 200 * time.Millisecond
	longestWait = time.Minute
)

// Run copies changes until the copy is current, or until ctx ends if o.Follow is set. After a temporary error of the
// destination, Run opens the destination again and continues from its position. Temporary errors of the first Open are
// final unless o.Follow is set. Run returns the progress also with an error.
//
// If the source has lost the copy's position, Run mends a [Verifiable] copy as [Verify] does, and tells a [Receiver]. The
// error has a [*client.HistoryLostError] in its chain for any other copy, or if over half of the copy's rows would go.
func Run(ctx context.Context, o Options) (Progress, error) {
	o.Note = Once(o.Note)
	r := &run{Options: o}
	var retry retries
	for {
		before := r.batches
		err := r.copy(ctx)
		if lost, ok := errors.AsType[*client.HistoryLostError](err); ok && !IsTemporary(err) && ctx.Err() == nil {
			if err = r.recover(ctx, lost, err); err == nil {
				continue
			}
		}
		if err == nil || ctx.Err() != nil {
			return r.progress, causeOf(ctx, err)
		}
		if r.batches > before {
			retry = retries{}
		}
		if r.opened || r.Follow {
			err = retry.after(ctx, &r.Options, err)
		}
		if err != nil {
			return r.progress, err
		}
	}
}

// retries counts the attempts in a row that failed. The wait before an attempt doubles with each failure, up to
// longestWait.
type retries struct {
	failed int
	wait   time.Duration // wait before the last attempt
}

// after counts a failed attempt and waits until the next attempt may begin. after returns an error if there must be no
// further attempt, or ctx ends.
func (r *retries) after(ctx context.Context, o *Options, err error) error {
	r.failed++
	temporary, ok := errors.AsType[temporaryError](err)
	if !ok || r.failed >= o.Attempts {
		return err
	}
	r.wait = min(max(2*r.wait, firstWait), longestWait)
	pause := max(r.wait/2+rand.N(r.wait/2), temporary.after)
	if o.Notify != nil {
		o.Notify(err, pause)
	}
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// causeOf returns the cause of ctx's end if ctx has ended, otherwise err.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// recover brings the destination to a position that the source has. err is the error for a destination that cannot.
func (r *run) recover(ctx context.Context, lost *client.HistoryLostError, err error) error {
	if r.recovered != nil && *r.recovered == r.from {
		return err // the source refuses what it said to be sound
	}
	switch to := r.Destination.(type) {
	case Receiver:
		r.Note("The receiver is told that " + r.Source.loses(lost, r.from) + ". The receiver gets everything from the beginning.")
		if err := to.Lose(ctx, lost); err != nil {
			return err
		}
		r.again, r.Query.After = true, ""
	case Verifiable:
		if _, err := Verify(ctx, Verification{Options: r.Options, Repair: true, careful: true, Name: func(Difference) error { return nil }}); err != nil {
			return err
		}
	default:
		return err
	}
	r.recovered = new(r.from)
	return nil
}

type run struct {
	Options
	from  Position // with which the destination was opened
	lost  error    // the source has lost that position
	again bool     // the receiver gets everything from the beginning, since the source has lost its position
	// recovered is the position that the source had lost at the last recovery.
	recovered *Position
	opened    bool // Open has succeeded once, so the destination is configured correctly
	batches   int
	progress  Progress
	nextLook  time.Time // when to read the project again
	nextRead  time.Time // when to read the last verification again
}

// copy opens the destination, copies until r.read ends or an error occurs, and closes the destination.
func (r *run) copy(ctx context.Context) (err error) {
	from, err := r.Destination.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Destination.Close()) }()
	if r.again {
		from = Position{}
	}
	r.from, r.lost = from, nil
	if !r.opened {
		r.opened = true
		r.progress.Began = from.Seq
	}
	// While one batch is written, one batch waits, and the next is read.
	batches := make(chan *Batch, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(batches)
		return r.read(ctx, from, batches)
	})
	filler, _ := r.Destination.(Filler)
	fills := make(chan *Filling)
	group.Go(func() error {
		defer close(fills)
		return r.fill(ctx, filler, from, fills)
	})
	group.Go(func() error { return r.write(ctx, batches, filler, fills) })
	return cmp.Or(group.Wait(), r.lost)
}

// write passes batches to the destination and fills to filler, until both channels are closed.
func (r *run) write(ctx context.Context, batches <-chan *Batch, filler Filler, fills <-chan *Filling) error {
	for batches != nil || fills != nil {
		select {
		case b, ok := <-batches:
			if !ok {
				batches = nil
				continue
			}
			if err := r.Destination.Apply(ctx, b); err != nil {
				return err
			}
			r.again = false
			r.lookVerified(ctx)
			r.note(b)
		case f, ok := <-fills:
			if !ok {
				fills = nil
				continue
			}
			if err := filler.Fill(ctx, f); err != nil {
				return err
			}
			r.batches++
		}
	}
	return nil
}

// lookVerified reads the result of the last verification of the copy, at most once a minute, if the run follows the
// feed. Another process may have made the verification. An error does not stop the copy, because the run reads again
// after a minute.
func (r *run) lookVerified(ctx context.Context) {
	d, ok := r.Destination.(Verifiable)
	if now := time.Now(); ok && r.Follow && now.After(r.nextRead) {
		if status, err := d.Status(ctx); err == nil {
			r.progress.Verified = status.Verified
		}
		r.nextRead = now.Add(time.Minute)
	}
}

func (r *run) note(b *Batch) {
	r.batches++
	p := &r.progress
	if p.Began == 0 && len(b.Changes) > 0 {
		p.Began = b.Changes[0].Seq
	}
	p.Changes += int64(len(b.Changes))
	p.Bytes += int64(b.Bytes)
	p.Seq, p.LastSeq, p.Current = b.Position.Seq, b.LastSeq, b.Current
	if r.Progress != nil {
		r.Progress(*p)
	}
}

// read reads the feed from the position from on, gathers pages into batches, and sends a batch to batches when it is
// full or current. If the copy does not follow the feed, read ends when the copy is current.
func (r *run) read(ctx context.Context, from Position, batches chan<- *Batch) error {
	limits := r.Destination.Limits()
	pages := newPages(&r.Options, r.Query, min(r.PageSize, limits.Changes), limits.Bytes)
	at := from
	batch := &Batch{}
	var began time.Time    // when the batch got its first change
	var wait time.Duration // how long the next request waits for changes
	for {
		p, err := pages.read(ctx, at, wait)
		if lost := r.Source.lost(err, at); lost != nil {
			if at != from {
				return Temporary(lost) // the stored position may be sound
			}
			r.lost = lost // which is no error here, so that the rows that lack values are filled before
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.Source.removed(&p, at); err != nil {
			return err
		}
		// A copy that starts with the newest change commits its start before any change. So a later run does not start
		// at a later change.
		starts := at.Cursor == "" && at.Seq == 0 && r.Query.After == "now"
		if starts {
			p.Changes, p.bytes = nil, 0
		}
		if len(batch.Changes) == 0 {
			began, batch.Known = time.Now(), p.LastSeq
		}
		if n := len(p.Changes); n > 0 {
			at.Seq = p.Changes[n-1].Seq
		}
		at.Cursor = p.NextCursor
		batch.Changes = append(batch.Changes, p.Changes...)
		batch.Bytes += p.bytes
		batch.Position, batch.Current, batch.LastSeq = at, p.Current, p.LastSeq
		rest := limits.Linger - time.Since(began)
		full := starts || len(batch.Changes) >= limits.Changes || batch.Bytes >= limits.Bytes
		wait = 0
		if p.Current && r.Follow {
			wait = longestRequest
		}
		// A batch with an erasure does not wait for other changes, because the caller of the erasure may wait for all
		// copies.
		if p.Current && r.Follow && len(batch.Changes) > 0 && rest > 0 && !full && !slices.ContainsFunc(batch.Changes, erases) {
			wait = min(rest, longestRequest)
			continue
		}
		if !full && !p.Current {
			continue
		}
		if err := r.look(ctx, batch); err != nil {
			return err
		}
		at = batch.Position
		select {
		case batches <- batch:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if p.Current && !r.Follow {
			return nil
		}
		batch = &Batch{}
	}
}

// erases reports whether c removes an entry with the reason "erased".
func erases(c client.Change) bool { return c.Removal != nil && c.Removal.Reason == client.Erased }

// Percent estimates how much of the way to the project's newest change the run has made, from 0 to 100. The result is
// an estimate because the numbers of changes have gaps. The result is 100 only if the copy is current.
func (p Progress) Percent() int64 {
	if p.Current {
		return 100
	}
	return min(99, 100*max(p.Seq-p.Began, 0)/max(p.LastSeq-p.Began, 1))
}
