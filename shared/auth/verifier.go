package auth

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/semaphore"

	"github.com/lectern-dev/lectern/shared/admission"
	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/trustedkeys"
	"github.com/lectern-dev/lectern/shared/wire"
)

const (
	// CopyLife is how long a process uses its cached copy of a key, or remembers that a key was refused. The time
	// counts from just before the look-up to the start of the request.
	CopyLife = time.Second

	// renewAfter is the age from which the next request for an accepted key renews the key's copy in the background.
	renewAfter = 700 * time.Millisecond

	// slotWait is how long a look-up waits while [VerifierOptions.MaxLookups] look-ups are in flight. Then the request
	// gets 429.
	slotWait = 500 * time.Millisecond

	// lookupLimit is how long one look-up may take, unless [VerifierOptions.LookupLimit] is longer.
	lookupLimit = 2 * time.Second

	// capacity is how many keys a process caches, refused ones included: about 30 MB when full.
	capacity = 100_000
)

// VerifierOptions configures a [Verifier]: which keys it looks up, and how many look-ups and refused keys it allows.
type VerifierOptions struct {
	// Foreign is the set of the stored foreign keys. The Verifier looks up a foreign key only if the set has it. Nil:
	// the Verifier refuses foreign keys.
	Foreign *ForeignKeys

	// Issuers verifies tokens. Nil: the Verifier refuses tokens.
	Issuers *Issuers

	// Uses records when keys are used. Nil: uses are not recorded.
	Uses *LastUse

	// MaxLookups is how many look-ups may be in flight. Required.
	MaxLookups int

	// LookupLimit is how long one look-up may take, if that is over 2 s.
	LookupLimit time.Duration

	// UnknownRate is how many refused keys one client network may try a second. 0: any number.
	UnknownRate int
}

// Verifier decides whether a key is valid for a project. Verifier caches the answers of a Store for [CopyLife], and has
// at most one look-up in flight for each key of a project.
type Verifier struct {
	store Store
	o     VerifierOptions

	copies   copies
	loader   otter.Loader[rightsHolder, *keyCopy]
	refusals *trustedkeys.Refusals

	slots  *semaphore.Weighted
	ctx    context.Context // of the look-ups; Close cancels it
	cancel context.CancelFunc
}

// copies is the cache of keyCopy values by holder. The interface hides otter's Cache type. The compiler emits the 200
// methods of Cache in each package that reaches the type.
type copies interface {
	GetIfPresent(holder rightsHolder) (*keyCopy, bool)
	Get(ctx context.Context, holder rightsHolder, l otter.Loader[rightsHolder, *keyCopy]) (*keyCopy, error)
	Refresh(ctx context.Context, holder rightsHolder, l otter.Loader[rightsHolder, *keyCopy]) <-chan otter.RefreshResult[rightsHolder, *keyCopy]
}

// rightsHolder identifies a key or an identity in the cache.
type rightsHolder struct {
	project string // of the request
	hash    Hash   // of the key, or of the token's subject
	groups  string // the hashes of the token's groups, one after the other
}

// keyCopy is a store's answer about a key. The cache keeps an old copy: validFor decides whether the copy may answer a
// request. An old copy also shows that the key was accepted before.
type keyCopy struct {
	principal Principal
	records   []string    // the ids of the records that give the principal its rights
	refusal   Refusal     // "": the key is accepted
	asked     time.Time   // just before the store was asked
	used      atomic.Bool // whether its use was reported
}

// validFor reports whether the copy may answer a request that began at the given time: the copy is younger than
// [CopyLife]. If several records of groups gave the rights, another copy has those that are left when the first expires.
func (c *keyCopy) validFor(began time.Time) bool {
	return began.Sub(c.asked) < CopyLife && (len(c.records) < 2 || !c.principal.expired(began))
}

// NewVerifier returns a Verifier that looks keys up in store. The caller calls Close at the end.
func NewVerifier(store Store, o VerifierOptions) *Verifier {
	v := &Verifier{
		store:    store,
		o:        o,
		refusals: trustedkeys.NewRefusals(o.UnknownRate),
		slots:    semaphore.NewWeighted(int64(o.MaxLookups)),
	}
	v.copies = otter.Must(&otter.Options[rightsHolder, *keyCopy]{
		MaximumSize: capacity,
		RefreshCalculator: otter.RefreshWritingFunc(func(e otter.Entry[rightsHolder, *keyCopy]) time.Duration {
			return max(1, time.Until(e.Value.asked.Add(renewAfter))) // otter ignores a duration of 0 or less
		}),
		Logger: &otter.NoopLogger{}, // lectern.key.lookups counts failed look-ups
	})
	v.loader = loader{v}
	v.ctx, v.cancel = context.WithCancel(context.Background())
	return v
}

// Verify returns the principal that key identifies in the project. The error is a [Refusal] if the key is not accepted,
// or the error of ctx if ctx ended first. Otherwise the error is an apierr. RateLimited: too many look-ups are in
// flight, or the client's network has tried too many refused keys. Unavailable: the store failed, or the foreign keys
// are not loaded yet.
//
// For a key with a valid copy, Verify does not wait for the store.
func (v *Verifier) Verify(ctx context.Context, projectID, key string) (Principal, error) {
	h, err := v.parse(key)
	if err != nil {
		return Principal{}, err
	}
	return v.decide(ctx, rightsHolder{project: projectID, hash: h})
}

// VerifyToken returns the principal that a token's subject or groups identify in the project. The errors are those of
// [Verifier.Verify]. Unavailable can also mean that the signing key of the token is unknown while its issuer cannot be
// reached. The principal's rights end with the token.
func (v *Verifier) VerifyToken(ctx context.Context, projectID, token string) (Principal, error) {
	b, err := v.bearerOf(ctx, token)
	if err != nil {
		return Principal{}, err
	}
	p, err := v.decide(ctx, rightsHolder{projectID, b.hash, b.groups})
	if err != nil {
		return Principal{}, err
	}
	if p.ExpiresAt.IsZero() || b.expires.Before(p.ExpiresAt) {
		p.ExpiresAt = b.expires
	}
	return p, nil
}

// bearerOf verifies a token. The error is a [Refusal] or an apierr. RateLimited: the client's network has tried too many
// refused keys and tokens, and the token is none that was verified lately.
func (v *Verifier) bearerOf(ctx context.Context, token string) (*bearer, error) {
	if v.o.Issuers == nil {
		return nil, ErrNoIssuers
	}
	return v.o.Issuers.verify(ctx, token, v.refusals)
}

// decide returns the principal of a key or identity in the project.
func (v *Verifier) decide(ctx context.Context, holder rightsHolder) (Principal, error) {
	if !wire.ValidIdentifier(holder.project) {
		return Principal{}, ErrUnknown
	}
	began := time.Now()
	c, seen := v.copies.GetIfPresent(holder)
	if seen && c.validFor(began) {
		if c.refusal == "" {
			// Get starts to renew an old copy and returns without waiting.
			_, _ = v.copies.Get(ctx, holder, v.loader)
		}
		return v.answer(c)
	}

	// A key that was accepted before is no random key. Refused keys from the same address do not delay it.
	address := admission.NetworkOf(httpapi.InfoFrom(ctx).ClientAddress)
	if (!seen || c.refusal != "") && v.refusals.Over(address) {
		return Principal{}, trustedkeys.ErrTooMany()
	}
	c, err := v.lookUp(ctx, holder, began)
	if err != nil {
		return Principal{}, err
	}
	if c.refusal != "" {
		v.refusals.Count(address)
	}
	return v.answer(c)
}

// parse returns the hash of key. The error is a [Refusal] if key is empty, malformed or an unknown foreign key. The
// error is the apierr Unavailable for a foreign key while the foreign keys are not loaded.
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

// answer returns the principal of the copy, or the reason why the key is refused. The key may have expired after the
// look-up, so answer checks the expiry again. answer notes the use of the key once for each copy.
func (v *Verifier) answer(c *keyCopy) (Principal, error) {
	if c.refusal != "" {
		return Principal{}, c.refusal
	}
	now := time.Now()
	if c.principal.expired(now) {
		return Principal{}, ErrExpired
	}
	if v.o.Uses != nil && c.used.CompareAndSwap(false, true) {
		for _, id := range c.records {
			v.o.Uses.note(c.principal.ProjectID, id, now)
		}
	}
	return c.principal, nil
}

// lookUp joins the look-up of the key that is in flight, or starts a new look-up. The look-up continues when ctx is
// cancelled, because other requests may wait for the same look-up.
func (v *Verifier) lookUp(ctx context.Context, holder rightsHolder, began time.Time) (*keyCopy, error) {
	// The project may be a part of the request's memory.
	holder.project = strings.Clone(holder.project)
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case r := <-v.copies.Refresh(ctx, holder, v.loader):
			// A look-up that began too long before the request cannot answer it. The next look-up begins later.
			if r.Err != nil || r.Value.validFor(began) {
				return r.Value, r.Err
			}
		}
	}
}

// loader looks a key up in the store when the cache of a Verifier lacks the key, or renews its copy.
type loader struct{ *Verifier }

// Reload returns a new copy of the key from the store. If another look-up has renewed the copy already, Reload returns
// old.
func (l loader) Reload(ctx context.Context, holder rightsHolder, old *keyCopy) (*keyCopy, error) {
	if now := time.Now(); now.Sub(old.asked) < renewAfter && old.validFor(now) {
		return old, nil
	}
	return l.Load(ctx, holder)
}

// Load asks the store about a key and returns the answer as a copy; a refusal is also a copy. The error is an apierr:
// RateLimited if too many look-ups are in flight, or else the fault of the store, usually Unavailable.
func (l loader) Load(ctx context.Context, holder rightsHolder) (*keyCopy, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(l.o.LookupLimit, lookupLimit))
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	// A look-up that finds a free slot takes it, even if this goroutine ran late.
	if !l.slots.TryAcquire(1) {
		waiting, cancel := context.WithTimeout(ctx, slotWait)
		defer cancel()
		if err := l.slots.Acquire(waiting, 1); err != nil {
			if ctx.Err() != nil { // Close, not too many look-ups
				return nil, apierr.NotAvailable(ctx.Err())
			}
			return nil, tooMany(time.Second)
		}
	}
	defer l.slots.Release(1)

	c := &keyCopy{asked: time.Now()}
	records, err := l.records(ctx, holder)
	if err == nil {
		c.principal, c.records, err = holder.principal(records, c.asked)
	}
	switch why, refused := errors.AsType[Refusal](err); {
	case refused:
		c.refusal = why
	case err != nil:
		if _, ok := errors.AsType[*apierr.Error](err); !ok {
			err = apierr.NotAvailable(err)
		}
		return nil, err
	}
	return c, nil
}

// records asks the store for the records about a key, or about an identity and its groups.
func (l loader) records(ctx context.Context, holder rightsHolder) ([]Record, error) {
	if holder.groups != "" {
		return l.store.Grants(ctx, holder.project, holder.hashes())
	}
	r, err := l.store.Lookup(ctx, holder.project, holder.hash)
	return []Record{r}, err
}

// Close cancels the look-ups in flight, and those that begin later.
func (v *Verifier) Close() { v.cancel() }
