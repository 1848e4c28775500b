package auth

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/wire"
)

const (
	// refusedFor is how long the process remembers that a key was refused.
	refusedFor = time.Second

	// unsubscribedTTL is how long a copy is used that was made while [VerifierOptions.Unsubscribed] returned true.
	unsubscribedTTL = 900 * time.Millisecond

	// noteEvery is the interval at which the use of a cached key is reported.
	noteEvery = 30 * time.Second

	// slotWait is how long a look-up waits for one of [VerifierOptions.MaxLookups].
	slotWait = 500 * time.Millisecond
)

// VerifierOptions configures a Verifier.
type VerifierOptions struct {
	// TTL is how long after Postgres was read a copy is used. Required.
	TTL time.Duration

	// Unsubscribed reports whether Redis is up but the process is not subscribed to the broadcasts, so that it would
	// miss a change. A copy that is made then lives for less than a second. While Redis is down, Unsubscribed returns
	// false: then TTL bounds the copies. Nil: always false.
	Unsubscribed func() bool

	// Foreign decides which keys of other forms are looked up. Nil: such keys are refused.
	Foreign *ForeignKeys

	// Uses records when keys are used. Nil: uses are not recorded.
	Uses *LastUse

	// MaxLookups is how many look-ups may be in flight. Default: 64.
	MaxLookups int

	// UnknownRate is how many refused keys one client address may try a second. 0: any number.
	UnknownRate int

	// Now is the clock. Default: time.Now.
	Now func() time.Time

	// Capacity is how many accepted keys the process caches, and how many refused ones. Default: 100,000, about
	// 30 MB when full.
	Capacity int

	// LoadLimit is how long one look-up may take. Default: 2 s.
	LoadLimit time.Duration
}

// Verifier decides whether a key is valid for a project. It caches the answers of a Store, and has at most one
// look-up in flight for each key.
type Verifier struct {
	store Store
	o     VerifierOptions

	copies   *otter.Cache[subject, *keyCopy]
	refused  *otter.Cache[subject, refusal]
	changes  changes
	refusals *refusalCounter

	flights singleflight.Group
	slots   *semaphore.Weighted
	ctx     context.Context // of the look-ups; Close cancels it
	cancel  context.CancelFunc
}

// subject is a key in a project.
type subject struct {
	project string
	hash    Hash
}

// keyCopy is the cached record of a key. After until the key is looked up again.
type keyCopy struct {
	principal Principal
	expires   time.Time // when the key itself expires; zero: never
	loaded    time.Time
	until     time.Time    // when the copy expires
	noted     atomic.Int64 // when its use was last reported, as nanoseconds after loaded; 0: never
}

// refusal is the cached reason why a key is not accepted.
type refusal struct {
	why   Refusal
	until time.Time
}

// NewVerifier returns a Verifier over store. The caller closes it.
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
	if o.MaxLookups <= 0 {
		o.MaxLookups = 64
	}
	v := &Verifier{
		store:    store,
		o:        o,
		copies:   otter.Must(&otter.Options[subject, *keyCopy]{MaximumSize: o.Capacity}),
		refused:  otter.Must(&otter.Options[subject, refusal]{MaximumSize: o.Capacity}),
		changes:  newChanges(o.Capacity),
		refusals: newRefusalCounter(o.UnknownRate),
		slots:    semaphore.NewWeighted(int64(o.MaxLookups)),
	}
	v.ctx, v.cancel = context.WithCancel(context.Background())
	return v
}

// Verify returns the principal that key identifies in the project. The error is a [Refusal] if the key is not
// accepted, or the error of ctx if ctx ended first. Otherwise it is an apierr. RateLimited: too many look-ups are in
// flight, or the client's address has tried too many refused keys. Unavailable: the store failed.
//
// For a cached key it asks no store and allocates nothing.
func (v *Verifier) Verify(ctx context.Context, projectID, key string) (Principal, error) {
	h, err := v.parse(key)
	if err != nil {
		return Principal{}, err
	}
	if !wire.ValidIdentifier(projectID) {
		return Principal{}, ErrUnknown
	}
	about, now := subject{projectID, h}, v.o.Now()
	c, seen := v.copies.GetIfPresent(about)
	if seen && now.Before(c.until) {
		return v.grant(c, now)
	}
	if r, ok := v.refused.GetIfPresent(about); ok && now.Before(r.until) {
		return Principal{}, r.why
	}

	// A cached key that has expired was accepted before, so it is no random key. Refused keys from the same address
	// do not delay it.
	address := Network(httpapi.InfoFrom(ctx).ClientAddress)
	if !seen && v.refusals.over(address) {
		return Principal{}, tooMany(refusalWindow)
	}
	c, err = v.lookUp(ctx, about)
	if _, refused := errors.AsType[Refusal](err); refused {
		v.refusals.count(address)
	}
	if err != nil {
		return Principal{}, err
	}
	return v.grant(c, v.o.Now())
}

// parse returns the hash of key, or a refusal if key cannot be a stored key.
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

// grant accepts a key unless it has expired.
func (v *Verifier) grant(c *keyCopy, now time.Time) (Principal, error) {
	if !c.expires.IsZero() && !now.Before(c.expires) {
		return Principal{}, ErrExpired
	}
	if v.o.Uses != nil {
		c.note(v.o.Uses, now)
	}
	return c.principal, nil
}

// note reports a use, unless one was reported within noteEvery.
func (c *keyCopy) note(uses *LastUse, now time.Time) {
	last, since := c.noted.Load(), max(1, int64(now.Sub(c.loaded)))
	if (last == 0 || since-last >= int64(noteEvery)) && c.noted.CompareAndSwap(last, since) {
		uses.note(c.principal.ProjectID, c.principal.KeyID, now)
	}
}

// lookUp joins the look-up of the key that is in flight, or starts one. The look-up continues when ctx is cancelled,
// as other requests may wait for it.
func (v *Verifier) lookUp(ctx context.Context, about subject) (*keyCopy, error) {
	// The project may be a part of the request's memory.
	about.project = strings.Clone(about.project)
	done := v.flights.DoChan(about.project+"\x00"+string(about.hash[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.o.LoadLimit)
		defer cancel()
		defer context.AfterFunc(v.ctx, cancel)()
		return v.load(ctx, about)
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-done:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*keyCopy), nil
	}
}

// load asks the store and caches its answer. If the key changes in between, it asks again: a waiting request may have
// come after the change.
func (v *Verifier) load(ctx context.Context, about subject) (*keyCopy, error) {
	waiting, cancel := context.WithTimeout(ctx, slotWait)
	defer cancel()
	if err := v.slots.Acquire(waiting, 1); err != nil {
		if ctx.Err() != nil { // Close, not too many look-ups
			return nil, apierr.NotAvailable(ctx.Err())
		}
		return nil, tooMany(time.Second)
	}
	defer v.slots.Release(1)

	// The look-up before this one may have ended after the request found no copy.
	if c, ok := v.copies.GetIfPresent(about); ok && v.o.Now().Before(c.until) {
		return c, nil
	}
	const attempts = 4
	for range attempts {
		began, asked := v.changes.now(), v.o.Now()
		record, err := v.store.Lookup(ctx, about.project, about.hash)
		c, err := v.cache(about, record, err, asked)
		// Check only now: a change that comes later drops the copy that was just cached.
		if !v.changes.since(began, about) {
			return c, err
		}
		v.forget(about)
	}
	return nil, apierr.NotAvailable(errors.New("the key changes faster than it can be read"))
}

// cache caches a store's answer, unless it is a fault.
func (v *Verifier) cache(about subject, r Record, err error, asked time.Time) (*keyCopy, error) {
	why, refused := errors.AsType[Refusal](err)
	switch {
	case refused:
	case err != nil:
		if _, ok := errors.AsType[*apierr.Error](err); !ok {
			err = apierr.NotAvailable(err)
		}
		return nil, err
	case r.ProjectID != about.project:
		why, refused = ErrUnknown, true
	case !r.RevokedAt.IsZero():
		why, refused = ErrRevoked, true
	}
	if refused {
		v.copies.Invalidate(about)
		v.refused.Set(about, refusal{why, asked.Add(refusedFor)})
		return nil, why
	}
	c := &keyCopy{
		principal: Principal{KeyID: r.ID, ProjectID: about.project, Scopes: r.Scopes, Rate: r.Rate},
		expires:   r.ExpiresAt,
		loaded:    asked,
		until:     r.ReadAt.Add(v.o.TTL),
	}
	if soon := asked.Add(unsubscribedTTL); v.o.Unsubscribed != nil && v.o.Unsubscribed() && soon.Before(c.until) {
		c.until = soon
	}
	v.copies.Set(about, c)
	v.refused.Invalidate(about)
	return c, nil
}

func (v *Verifier) forget(about subject) {
	v.copies.Invalidate(about)
	v.refused.Invalidate(about)
}

// Changed drops the cached copy of a key. A look-up in flight asks the store again.
func (v *Verifier) Changed(projectID string, h Hash) {
	about := subject{projectID, h}
	v.changes.add(about)
	v.forget(about)
}

// Drop drops all cached copies. All look-ups in flight ask the store again.
func (v *Verifier) Drop() {
	v.changes.addAll()
	v.copies.InvalidateAll()
	v.refused.InvalidateAll()
}

// Close cancels the look-ups in flight.
func (v *Verifier) Close() {
	v.cancel()
	v.changes.keys.StopAllGoroutines()
	v.refusals.windows.StopAllGoroutines()
}

// changes remembers for a while which keys have changed. Without it, a look-up that read the store before a change
// could cache its answer after the change dropped the copy.
type changes struct {
	count *atomic.Uint64
	all   *atomic.Uint64 // the count at the last change of all keys
	keys  *otter.Cache[subject, uint64]
}

// changesKept is how long a change is remembered. It is longer than any look-up takes.
const changesKept = time.Minute

func newChanges(capacity int) changes {
	return changes{
		count: new(atomic.Uint64),
		all:   new(atomic.Uint64),
		keys: otter.Must(&otter.Options[subject, uint64]{
			MaximumSize: capacity, ExpiryCalculator: otter.ExpiryWriting[subject, uint64](changesKept),
		}),
	}
}

func (c changes) add(about subject) { c.keys.Set(about, c.count.Add(1)) }
func (c changes) addAll()           { c.all.Store(c.count.Add(1)) }
func (c changes) now() uint64       { return c.count.Load() }

// since reports whether the key has changed since began, which now returned.
func (c changes) since(began uint64, about subject) bool {
	at, ok := c.keys.GetIfPresent(about)
	return ok && at > began || c.all.Load() > began
}
