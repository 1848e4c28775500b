package auth

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/wire"
)

const (
	// freshFor bounds how long a local copy is used without asking, or being told of all changes, so that
	// a revocation whose broadcast was missed is seen within a second.
	freshFor = 900 * time.Millisecond

	// unknownFor is how long a key that was not found is remembered as such.
	unknownFor = time.Second

	// noteEvery is how often the use of a key that is held is reported.
	noteEvery = 30 * time.Second

	// patience is how long a request that has a usable copy waits for a store that does not answer.
	patience = 200 * time.Millisecond

	// retryAfter is how long a store that failed for a key is not asked about it again, while there is
	// a usable copy.
	retryAfter = 250 * time.Millisecond
)

// VerifierOptions is what a Verifier is given besides its store.
type VerifierOptions struct {
	// TTL bounds how long after the store of record was read its answer is believed. Required.
	TTL time.Duration

	// Foreign lets keys of any form be tried when it knows their hash. Nil: they are refused.
	Foreign *ForeignKeys

	// Uses is told when a key is used. Nil: nobody is.
	Uses *LastUse

	// Now is the clock. Default: time.Now.
	Now func() time.Time

	// Capacity is how many keys are held in process, and as many again that were not found.
	// Default: 100,000, some 30 MB when full.
	Capacity int

	// LoadLimit is how long one look-up may take. Default: 2 s.
	LoadLimit time.Duration
}

// Verifier tells whether a key is good for a project. It holds what a Store answered, bounded in
// number and age, and asks once however many requests wait for the same key.
type Verifier struct {
	store Store
	o     VerifierOptions
	fresh time.Duration

	known   *otter.Cache[subject, *verdict]
	unknown *otter.Cache[subject, refused]
	changes generations
	doubted atomic.Pointer[time.Time] // copies asked for before it must be asked for again
	account atomic.Pointer[account]   // nil: no change is told

	flights flights
	ctx     context.Context // of the loads; ends with Close
	cancel  context.CancelFunc
	loads   sync.WaitGroup

	tally Tally
}

// subject is what a verdict is about.
type subject struct {
	project string
	hash    Hash
}

// verdict is a key that was found, with how long it may be believed.
type verdict struct {
	principal  Principal
	expires    time.Time // zero: never
	generation uint64
	asked      time.Time // when the load began
	readAt     time.Time // when the store of record was read, at most asked
	deadline   time.Time // TTL after that

	notedAt    atomic.Int64 // when its use was reported last, as nanoseconds after asked; 0: it was not
	refreshing atomic.Bool  // a load that will replace it has begun
	failedAt   atomic.Int64 // when asking failed, as nanoseconds after asked; 0: it did not
}

// refused is a key that was not found, or is revoked.
type refused struct {
	why        Refusal
	generation uint64
	asked      time.Time
}

// NewVerifier makes a Verifier over store. The caller closes it.
func NewVerifier(store Store, o VerifierOptions) *Verifier {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Capacity <= 0 {
		o.Capacity = 100_000
	}
	if o.LoadLimit <= 0 {
		o.LoadLimit = 2 * time.Second
	}
	v := &Verifier{
		store:   store,
		o:       o,
		fresh:   min(o.TTL, freshFor),
		known:   otter.Must(&otter.Options[subject, *verdict]{MaximumSize: o.Capacity}),
		unknown: otter.Must(&otter.Options[subject, refused]{MaximumSize: o.Capacity}),
	}
	v.doubted.Store(new(time.Time))
	v.ctx, v.cancel = context.WithCancel(context.Background())
	return v
}

// Verify returns whom key speaks for in the project. A key that is not accepted is a [Refusal]. A
// fault of the stores is an apierr of Unavailable, or what the store answered as an apierr.
//
// Warm, it takes no lock, makes no garbage and asks nobody.
func (v *Verifier) Verify(ctx context.Context, projectID, key string) (Principal, error) {
	h, err := v.parse(key)
	if err != nil {
		return Principal{}, err
	}
	if !wire.ValidIdentifier(projectID) {
		return Principal{}, ErrUnknown
	}
	about := subject{projectID, h}
	generation := v.changes.current(h.Shard())
	now := v.o.Now()

	held, ok := v.known.GetIfPresent(about)
	if ok && held.generation == generation {
		known, deadline, told := v.standing(held)
		age := now.Sub(known)
		switch {
		case !now.Before(deadline):
			// As if it were not held.
		case age < v.fresh && known.After(*v.doubted.Load()):
			if v.renewable(held, age, told, now) {
				v.refresh(ctx, about, held, now)
			}
			v.tally.Hit()
			return v.grant(held, now)
		case held.failedSince(known):
			v.refresh(ctx, about, held, now)
			v.tally.Hit()
			return v.grant(held, now)
		default:
			v.tally.Miss()
			return v.ask(ctx, about, held)
		}
	}

	if no, ok := v.unknown.GetIfPresent(about); ok && no.generation == generation && now.Sub(no.asked) < unknownFor {
		v.tally.Hit()
		return Principal{}, no.why
	}
	v.tally.Miss()
	return v.ask(ctx, about, nil)
}

// parse returns the hash of a key that may be tried.
func (v *Verifier) parse(key string) (Hash, error) {
	if key == "" {
		return Hash{}, ErrMissing
	}
	if v.o.Foreign == nil || !IsForeign(key) {
		return ParseKey(key)
	}
	h, err := ParseForeignKey(key)
	if err != nil {
		return Hash{}, err
	}
	known, err := v.o.Foreign.Has(h)
	switch {
	case err != nil:
		return Hash{}, apierr.NotAvailable(err)
	case !known:
		return Hash{}, ErrUnknown
	}
	return h, nil
}

// grant accepts a key, unless its time has come.
func (v *Verifier) grant(held *verdict, now time.Time) (Principal, error) {
	if !held.expires.IsZero() && !now.Before(held.expires) {
		return Principal{}, ErrExpired
	}
	if v.o.Uses != nil {
		held.note(v.o.Uses, now)
	}
	return held.principal, nil
}

// note reports a use, unless one was reported lately.
func (d *verdict) note(uses *LastUse, now time.Time) {
	last, since := d.notedAt.Load(), max(1, int64(now.Sub(d.asked)))
	if (last == 0 || since-last >= int64(noteEvery)) && d.notedAt.CompareAndSwap(last, since) {
		uses.note(d.principal.ProjectID, d.principal.KeyID, now)
	}
}

// refresh has held replaced in the background, once; after a failure not again for a moment.
func (v *Verifier) refresh(ctx context.Context, about subject, held *verdict, now time.Time) {
	if failed := held.failedAt.Load(); failed != 0 && now.Sub(held.asked) < time.Duration(failed)+retryAfter {
		return
	}
	if held.refreshing.CompareAndSwap(false, true) {
		v.join(ctx, about)
	}
}

// ask waits for what the store says. When it fails and held, which may be nil, is still good, that
// serves instead.
func (v *Verifier) ask(ctx context.Context, about subject, held *verdict) (Principal, error) {
	f := v.join(ctx, about)
	var tooLong <-chan time.Time
	if held != nil {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		tooLong = timer.C
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return Principal{}, ctx.Err()
	case <-tooLong:
		if v.usable(about, held) {
			held.fail(v.o.Now())
			return v.grant(held, v.o.Now())
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return Principal{}, ctx.Err()
		}
	}
	switch {
	case f.fault != nil:
		if held != nil && !errors.Is(f.fault, ErrChanged) && v.usable(about, held) {
			return v.grant(held, v.o.Now())
		}
		if _, ok := errors.AsType[*apierr.Error](f.fault); ok {
			return Principal{}, f.fault
		}
		return Principal{}, apierr.NotAvailable(f.fault)
	case f.found == nil:
		return Principal{}, f.why
	}
	return v.grant(f.found, v.o.Now())
}

// usable tells whether held may serve while the store is out of reach.
func (v *Verifier) usable(about subject, held *verdict) bool {
	_, deadline, _ := v.standing(held)
	return held.generation == v.changes.current(about.hash.Shard()) && v.o.Now().Before(deadline)
}

// failedSince tells whether asking failed after a moment.
func (d *verdict) failedSince(known time.Time) bool {
	failed := d.failedAt.Load()
	return failed != 0 && !d.asked.Add(time.Duration(failed)).Before(known)
}

// fail notes that asking failed, so that for a moment nobody waits for it again.
func (d *verdict) fail(now time.Time) {
	d.failedAt.Store(max(1, int64(now.Sub(d.asked))))
	d.refreshing.Store(false)
}

// Changed says that a key of the shard (see [Hash.Shard]) has changed: what is held of the shard, and
// what is being loaded, is not used any more.
func (v *Verifier) Changed(shard byte) { v.changes.bump(shard) }

// Doubt says that changes may have been missed until now: all that is held is asked for again before
// it is used, or used as before when no store answers.
func (v *Verifier) Doubt() {
	now := v.o.Now()
	v.doubted.Store(&now)
}

// Tally counts look-ups in process.
func (v *Verifier) Tally() *Tally { return &v.tally }

// Close ends the loads that are under way.
func (v *Verifier) Close() {
	v.cancel()
	v.flights.close()
	v.loads.Wait()
}

// keep makes a copy of s that does not hold on to the request that s is a part of.
func (s subject) keep() subject { return subject{strings.Clone(s.project), s.hash} }
