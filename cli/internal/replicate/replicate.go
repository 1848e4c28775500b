// Package replicate keeps a copy of a project up to date. It reads the project's change feed page by page and gathers
// changes into batches. It reads the other records, which have no feed, as a whole when they have changed. A [Destination]
// commits each batch together with the position after it. So a copy is exact even if a process is killed: the next run continues from the destination's position.
package replicate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lectern-dev/lectern/client"
)

// Position is the position of a copy in the feed. The zero value is the beginning.
type Position struct {
	// Cursor continues the feed.
	Cursor string `json:"cursor"`
	// Seq is the number of the last change that the copy has; 0 for none.
	Seq int64 `json:"seq"`
	// Project is a digest of the [Project] that the copy has; "" if it never got one.
	Project string `json:"project,omitempty"`
}

// Source identifies the source of a copy.
type Source struct {
	// URL is the address of the API.
	URL string `json:"url"`
	// ProjectID is the project.
	ProjectID string `json:"project_id"`
}

// Batch is changes in the order of their numbers.
type Batch struct {
	Changes []client.Change
	// Project is the whole project; nil if it is as the copy has it. A batch may have a project and no changes.
	Project *Project
	// Bytes is the size of the changes in the feed.
	Bytes int
	// Position is the position after the batch.
	Position Position
	// Current reports that the copy has all changes that there are once it has this batch.
	Current bool
	// LastSeq is the number of the project's newest change when the batch was read, and Known before its first change was.
	LastSeq, Known int64
}

// Destination is a copy. Its methods are not called concurrently. [Temporary] marks errors that a retry may avoid.
type Destination interface {
	// Open locks the copy for this process, creates it if it is missing, and returns the position of the last batch that it
	// committed. It fails if another process has the lock, or if the copy has another source.
	Open(ctx context.Context) (Position, error)
	// Apply commits a batch and the position after it, all or nothing. A batch that is current may have no changes.
	Apply(ctx context.Context, b *Batch) error
	// Limits returns the bounds of one batch.
	Limits() Limits
	// Close releases the copy.
	Close() error
}

// Limits bound a batch.
type Limits struct {
	// Changes and Bytes end a batch when it has reached one of them.
	Changes, Bytes int
	// Linger is how long changes wait for others when the copy is current and follows the feed.
	Linger time.Duration
}

// Options configure a copy.
type Options struct {
	Client      *client.Client
	Source      Source
	Destination Destination
	// Query selects the changes by its Types, and where a new copy starts by its After: all from the beginning by default.
	Query client.ChangeQuery
	// Mask applies to all records that the destination gets. The destination has the same one.
	Mask *Mask
	// Project copies the whole project, not only its changes.
	Project bool
	// Follow continues when the copy is current, until ctx ends.
	Follow bool
	// PageSize is the greatest number of changes of one request.
	PageSize int
	// Attempts is how often in a row the destination may fail for a time, the first time included. It may be
	// [client.Forever].
	Attempts int
	// Progress, if set, is called after each batch.
	Progress func(Progress)
	// Notify, if set, is called before each wait for the destination.
	Notify func(err error, wait time.Duration)
	// Note, if set, is called with a sentence for the user, once for each fact.
	Note func(text string)
}

// Progress is the progress of a run.
type Progress struct {
	// Changes and Bytes count what was committed in this run.
	Changes, Bytes int64
	// Began is the number at which the run began, Seq the one at which the copy stands, and LastSeq the project's newest.
	Began, Seq, LastSeq int64
	// Current reports that the copy has all changes.
	Current bool
	// Verified is the last result of [Verify] that a run which follows has seen. It looks once a minute.
	Verified Verified
}

// ErrRemoved is in the chain of the error if the source no longer has changes of the project.
var ErrRemoved = errors.New("the project has no changes any more")

// removed returns an error if a page says that the source has no changes, and the copy has some.
func (s Source) removed(p *page, at Position) error {
	if p.Current && p.LastSeq == 0 && at.Seq > 0 {
		return fmt.Errorf("%w, although the copy has changes up to number %d: the project was removed at %s, or the data of another deployment is served there; the copy stays as it is",
			ErrRemoved, at.Seq, s.URL)
	}
	return nil
}

type temporaryError struct {
	error
	after time.Duration // before which a retry is useless
}

func (e temporaryError) Unwrap() error { return e.error }

// Temporary marks err as one that a retry may avoid.
func Temporary(err error) error { return TemporaryFor(err, 0) }

// TemporaryFor marks err as one that a retry may avoid once a time has passed.
func TemporaryFor(err error, after time.Duration) error { return temporaryError{err, after} }

// IsTemporary reports whether a retry may avoid err.
func IsTemporary(err error) bool {
	_, ok := errors.AsType[temporaryError](err)
	return ok
}

// Once returns a function that calls say, if it is set, with texts for the user: with each text once.
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

// Run copies until the copy is current, or until ctx ends if it follows. If the destination fails for a time, Run
// opens it again and continues from its position.
func Run(ctx context.Context, o Options) (Progress, error) {
	o.Note = Once(o.Note)
	r := &run{Options: o}
	var retry retries
	for {
		before := r.batches
		err := r.copy(ctx)
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

// retries are attempts in a row that failed.
type retries struct {
	failed int
	wait   time.Duration // before the last attempt
}

// after waits for the next attempt. It returns an error if there is none.
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

// causeOf returns the cause of ctx's end if it has ended, else err.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

type run struct {
	Options
	opened   bool // once at least: so the destination is one that works
	batches  int
	progress Progress
	nextLook time.Time // at the project
	nextRead time.Time // of the last verification
}

// copy opens the destination and copies until the end or an error.
func (r *run) copy(ctx context.Context) (err error) {
	from, err := r.Destination.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Destination.Close()) }()
	if !r.opened {
		r.opened = true
		r.progress.Began = from.Seq
	}
	// One batch is written and one waits while the next is read.
	batches := make(chan *Batch, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(batches)
		return r.read(ctx, from, batches)
	})
	group.Go(func() error {
		for b := range batches {
			if err := r.Destination.Apply(ctx, b); err != nil {
				return err
			}
			r.lookVerified(ctx)
			r.note(b)
		}
		return nil
	})
	return group.Wait()
}

// lookVerified reads the last verification of the copy, which another process may have made. A fault stops no copy: the run
// tries again after a minute.
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

// read gathers the pages of the feed into batches.
func (r *run) read(ctx context.Context, from Position, batches chan<- *Batch) error {
	limits := r.Destination.Limits()
	pages := newPages(&r.Options, r.Query, min(r.PageSize, limits.Changes), limits.Bytes)
	at := from
	batch := &Batch{}
	var began time.Time    // when the batch got its first change
	var wait time.Duration // how long the next request waits for changes
	for {
		p, err := pages.read(ctx, at.Cursor, wait)
		if err != nil {
			return err
		}
		if err := r.Source.removed(&p, at); err != nil {
			return err
		}
		// The copy has its start before any change. So another run does not start later.
		starts := at.Cursor == "" && r.Query.After == "now"
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
		// An erasure does not wait for other changes: its caller may wait for all copies.
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

// erases reports whether a change removes a person.
func erases(c client.Change) bool { return c.Removal != nil && c.Removal.Reason == client.Erased }

// Percent estimates how much of the way to the project's newest change the run has made. Numbers have gaps, so it is
// an estimate until the copy is current, which is 100.
func (p Progress) Percent() int64 {
	if p.Current {
		return 100
	}
	return min(99, 100*max(p.Seq-p.Began, 0)/max(p.LastSeq-p.Began, 1))
}
