package auth

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/limits"
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

	// capacity is how many keys a process caches, refused ones included: about 30 MB when full. A list of projects counts
	// as many times as it has projects.
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
}

// Verifier decides whether a key is valid for a project. Verifier caches the answers of a Store for [CopyLife], and has
// at most one look-up in flight for each key of a project.
type Verifier struct {
	store Store
	o     VerifierOptions

	copies  copies
	refused *limits.Refusals // of all kinds of credentials

	slots  *limits.Turns
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

// rightsHolder identifies a bearer in the cache. The size of a rightsHolder does not depend on the number of groups.
type rightsHolder struct {
	project string // of the request; empty: all projects
	bearer  Hash   // bearer.id
	page    page   // of all projects
}

// page is a part of a list of projects: at most limit of them, after the project id after.
type page struct {
	after string
	limit int
}

// keyCopy is a store's answer about a key. The cache keeps an old copy: validFor decides whether the copy may answer a
// request. An old copy also shows that the key was accepted before.
type keyCopy struct {
	principals []Principal    // one, or one for each project of a page
	records    []string       // the ids of the records that give the principal of one project its rights
	refusal    apierr.Refusal // "": the key is accepted
	asked      time.Time      // just before the store was asked
	used       atomic.Bool    // whether its use was reported
	others     bool           // whether there are more records, which may give rights when the principal expires
}

// validFor reports whether the copy may answer a request that began at the given time: the copy is younger than
// [CopyLife]. If there are several records, another copy has the rights that are left when the first record expires.
func (c *keyCopy) validFor(began time.Time) bool {
	return began.Sub(c.asked) < CopyLife && !(c.others && c.refusal == "" && c.principals[0].expired(began))
}

// NewVerifier returns a Verifier that looks keys up in store. The caller calls Close at the end.
func NewVerifier(store Store, o VerifierOptions) *Verifier {
	v := &Verifier{
		store:   store,
		o:       o,
		refused: limits.NewRefusals(),
		slots:   limits.NewTurns(o.MaxLookups, o.MaxLookups, func(context.Context) limits.Holder { return limits.Holder{} }),
	}
	v.copies = otter.Must(&otter.Options[rightsHolder, *keyCopy]{
		MaximumWeight: capacity,
		Weigher:       func(_ rightsHolder, c *keyCopy) uint32 { return uint32(max(1, len(c.principals))) },
		RefreshCalculator: otter.RefreshWritingFunc(func(e otter.Entry[rightsHolder, *keyCopy]) time.Duration {
			return max(1, time.Until(e.Value.asked.Add(renewAfter))) // otter ignores a duration of 0 or less
		}),
		Logger: &otter.NoopLogger{}, // lectern.key.lookups counts failed look-ups
	})
	v.ctx, v.cancel = context.WithCancel(context.Background())
	return v
}

// Verify returns the principal that text, an API key or a token, identifies in the project. The error is an [apierr.Refusal] if
// text is not accepted, or the error of ctx if ctx ended first. Otherwise the error is an apierr. RateLimited: too many
// look-ups are in flight, or the client's network has tried too many refused credentials. Unavailable: the store failed, or
// the foreign keys are not loaded yet. Unavailable also: the signing key of a token is unknown while its issuer is down.
//
// For a credential with a valid copy, Verify does not wait for the store. The rights of a token's bearer end with the token.
func (v *Verifier) Verify(ctx context.Context, projectID, text string) (Principal, error) {
	return v.principal(ctx, projectID, v.o.Issuers.parseCredential(text))
}

// principal does the work of [Verifier.Verify].
func (v *Verifier) principal(ctx context.Context, projectID string, c Credential) (Principal, error) {
	if !wire.ValidIdentifier(projectID) {
		return Principal{}, ErrUnknown
	}
	all, ends, err := v.verify(ctx, rightsHolder{project: projectID}, c)
	if err != nil {
		return Principal{}, err
	}
	p := all[0]
	if !ends.IsZero() && (p.ExpiresAt.IsZero() || ends.Before(p.ExpiresAt)) {
		p.ExpiresAt = ends
	}
	return p, nil
}

// Projects returns the principals of a key or token in its projects with ids greater than after, by project id, at most
// limit. A token whose identity has no rights has no projects. The errors are those of [Verifier.Verify].
func (v *Verifier) Projects(ctx context.Context, c Credential, after string, limit int) ([]Principal, error) {
	all, _, err := v.verify(ctx, rightsHolder{page: page{after, limit}}, c)
	if errors.Is(err, apierr.RefusedNoGrant) || errors.Is(err, apierr.RefusedGroupsCut) {
		return nil, nil
	}
	return all, err
}

// verify is the one way in for all kinds of credentials; doc.go draws it. verify returns the principal of a
// credential in the project of holder, or the principals of the page if the project is empty. The second result is the time
// at which the credential ends. The errors are those of [Verifier.Verify].
func (v *Verifier) verify(ctx context.Context, holder rightsHolder, c Credential) ([]Principal, time.Time, error) {
	b, err := v.identify(ctx, c)
	if err != nil {
		return nil, time.Time{}, err
	}
	holder.bearer = b.id
	all, err := v.decide(ctx, holder, b)
	if errors.Is(err, ErrUnknown) {
		err = b.nothing
	}
	return all, b.expires, err
}

// identify returns the bearer that a credential proves. identify asks no store. The error wraps an [apierr.Refusal], or is an
// apierr or the error of ctx.
func (v *Verifier) identify(ctx context.Context, c Credential) (bearer, error) {
	if c.token != "" {
		b, err := v.o.Issuers.verify(ctx, c.token, v.refused)
		if err != nil {
			return bearer{}, err
		}
		return *b, nil
	}
	if c.key == "" {
		return bearer{}, ErrMissing
	}
	if v.o.Foreign == nil || !IsForeign(c.key) {
		h, err := ParseKey(c.key)
		return bearer{hash: h, id: h, nothing: ErrUnknown}, err
	}
	h, err := ParseForeignKey(c.key)
	if err != nil {
		return bearer{}, err
	}
	known, err := v.o.Foreign.Has(h)
	switch {
	case err != nil:
		err = apierr.NotAvailable(err)
	case !known:
		err = v.refused.Refuse(networkOf(ctx), ErrUnknown)
	}
	return bearer{hash: h, id: h, nothing: ErrUnknown}, err
}

// decide returns the principals of b, the bearer of holder, in the holder's project, or those of the holder's page of projects.
func (v *Verifier) decide(ctx context.Context, holder rightsHolder, b bearer) ([]Principal, error) {
	began := time.Now()
	c, seen := v.copies.GetIfPresent(holder)
	if seen && c.validFor(began) {
		if c.refusal == "" && began.Sub(c.asked) >= renewAfter {
			// Get starts to renew an old copy and returns without waiting.
			_, _ = v.copies.Get(ctx, holder, loader{v, b})
		}
		return v.answer(c)
	}

	// A key that was accepted before is no random key. Refused keys from the same network do not delay it.
	if !seen && holder.page.after != "" {
		first := holder
		first.page.after = ""
		c, seen = v.copies.GetIfPresent(first)
	}
	if !seen || c.refusal != "" {
		if err := v.refused.Check(networkOf(ctx)); err != nil {
			return nil, err
		}
	}
	c, err := v.lookUp(ctx, holder, loader{v, b}, began)
	if err != nil {
		return nil, err
	}
	if c.refusal != "" {
		v.refused.Count(networkOf(ctx))
	}
	return v.answer(c)
}

// answer returns the principals of the copy, or the reason why the key is refused. A key may have expired after the
// look-up, so answer checks the expiry again. answer notes the use of a key in its project once for each copy.
func (v *Verifier) answer(c *keyCopy) ([]Principal, error) {
	if c.refusal != "" {
		return nil, c.refusal
	}
	now, all := time.Now(), c.principals
	ended := func(p Principal) bool { return p.expired(now) }
	if slices.ContainsFunc(all, ended) {
		if all = slices.DeleteFunc(slices.Clone(all), ended); len(all) == 0 {
			return nil, ErrExpired
		}
	}
	if v.o.Uses != nil && c.used.CompareAndSwap(false, true) {
		for _, id := range c.records {
			v.o.Uses.note(all[0].ProjectID, id, now)
		}
	}
	return all, nil
}

// lookUp joins the look-up of the holder that is in flight, or starts a new look-up by l. The look-up continues when ctx is
// cancelled, because other requests may wait for the same look-up.
func (v *Verifier) lookUp(ctx context.Context, holder rightsHolder, l loader, began time.Time) (*keyCopy, error) {
	// The project may be a part of the request's memory.
	holder.project = strings.Clone(holder.project)
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case r := <-v.copies.Refresh(ctx, holder, l):
			// A look-up that began too long before the request cannot answer it. The next look-up begins later.
			if r.Err != nil || r.Value.validFor(began) {
				return r.Value, r.Err
			}
		}
	}
}

// loader looks a bearer up in the store when the cache of a Verifier lacks the bearer, or renews its copy.
type loader struct {
	*Verifier
	bearer bearer
}

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
	waiting, cancelWait := context.WithTimeout(ctx, slotWait)
	defer cancelWait()
	release, err := l.slots.Acquire(waiting)
	if err != nil {
		if ctx.Err() != nil { // Close, not too many look-ups
			return nil, apierr.NotAvailable(ctx.Err())
		}
		return nil, tooMany(time.Second)
	}
	defer release()

	c := &keyCopy{asked: time.Now()}
	if holder.project == "" {
		c.principals, err = l.everywhere(ctx, holder.page, c.asked)
	} else {
		err = l.inProject(ctx, holder.project, c)
	}
	switch why, refused := errors.AsType[apierr.Refusal](err); {
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

// inProject asks the store for the principal of the bearer in the project, by one look-up, and writes the principal to c.
func (l loader) inProject(ctx context.Context, projectID string, c *keyCopy) error {
	var records []Record
	var err error
	if len(l.bearer.further) > 0 {
		records, err = l.store.Grants(ctx, projectID, l.bearer.hashes())
	} else {
		records = make([]Record, 1)
		records[0], err = l.store.Lookup(ctx, projectID, l.bearer.hash)
	}
	if err != nil {
		return err
	}
	p, ids, err := l.bearer.principal(projectID, records, c.asked)
	c.principals, c.records, c.others = []Principal{p}, ids, len(records) > 1
	return err
}

// everywhere asks the store for the principals of a page of projects. The error is [ErrUnknown] if the bearer has no rights in
// any project.
func (l loader) everywhere(ctx context.Context, in page, now time.Time) ([]Principal, error) {
	var (
		all     []Principal
		some    bool // whether the bearer has rights in any project
		records []Record
		project string // of records
	)
	flush := func() {
		if p, _, err := l.bearer.principal(project, records, now); err == nil {
			if some = true; p.ProjectID > in.after { // the store sorts by bytes
				all = append(all, p)
			}
		}
		records = records[:0]
	}
	err := l.store.EachProject(ctx, l.bearer.hashes(), func(r Record) bool {
		if r.ProjectID != project {
			flush()
		}
		project = r.ProjectID
		records = append(records, r)
		return len(all) < in.limit
	})
	if err != nil {
		return nil, err
	}
	if flush(); !some {
		return nil, ErrUnknown
	}
	return all[:min(len(all), in.limit)], nil
}

// Close cancels the look-ups in flight, and those that begin later.
func (v *Verifier) Close() { v.cancel() }
