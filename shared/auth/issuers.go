package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth/tokens"
	"github.com/lectern-dev/lectern/shared/limits"
)

const (
	// verifiedLife is how long a process takes a token for verified. Then the process checks the signature again, with the
	// signing keys that the issuer has at that time.
	verifiedLife = time.Minute

	// maxVerified bounds the verified tokens that a process keeps: 10,000, or 2,000 with 400 groups each, in about 32 MB.
	maxVerified = 1_000_000

	// tokenWeight is the weight of a verified token without groups. Each group adds 1.
	tokenWeight = 100
)

// bearer is a key, or the subject and the groups that a verified token proves, with the time at which the token expires.
type bearer struct {
	hash     Hash   // of the key, or of the subject
	further  []Hash // of the subject with its uid, and of the groups
	id       Hash   // the only hash, or a hash of all; identifies the bearer in the cache
	expires  time.Time
	verified time.Time
	nothing  apierr.Refusal // the reason if no record has one of the hashes
}

// hashes returns the hashes by which a store finds the records of the bearer.
func (b *bearer) hashes() []Hash { return append([]Hash{b.hash}, b.further...) }

// Issuers verifies tokens for a [Verifier] and for [SharedKeys], and keeps verified tokens for a minute. Nil: no tokens
// are accepted.
type Issuers struct {
	tokens   *tokens.Verifier
	verified bearers
	count    func(ctx context.Context, outcome string)
}

// bearers is the cache of verified tokens by their hash; see [copies].
type bearers interface {
	GetIfPresent(token Hash) (*bearer, bool)
	Set(token Hash, b *bearer) (*bearer, bool)
}

// NewIssuers returns Issuers. count counts each verification that the cache does not answer, by outcome: "hit", "miss"
// for a refused token, or "error".
func NewIssuers(t *tokens.Verifier, count func(ctx context.Context, outcome string)) *Issuers {
	return &Issuers{tokens: t, count: count, verified: otter.Must(&otter.Options[Hash, *bearer]{
		MaximumWeight: maxVerified,
		Weigher:       func(_ Hash, b *bearer) uint32 { return tokenWeight + uint32(len(b.further)) },
		Logger:        &otter.NoopLogger{},
	})}
}

// verify returns the bearer of a token, and counts refused tokens. The error is an [apierr.Refusal], an apierr, or the
// error of ctx. RateLimited: the client's network has sent too many refused credentials, and this token is refused too, or needs a
// read of the issuer's keys. Unavailable: the signing key is unknown because the issuer cannot be reached.
func (i *Issuers) verify(ctx context.Context, token string, counts *limits.Refusals) (*bearer, error) {
	if i == nil {
		return nil, apierr.RefusedIssuer
	}
	h, now := HashKey(token), time.Now()
	if b, ok := i.verified.GetIfPresent(h); ok && now.Sub(b.verified) < verifiedLife && now.Before(b.expires) {
		return b, nil
	}
	claims, err := i.tokens.Verify(ctx, token, func() error { return counts.Check(networkOf(ctx)) })
	if err != nil {
		_, answered := errors.AsType[*apierr.Error](err) // RateLimited, or too large
		_, unavailable := errors.AsType[*tokens.Unavailable](err)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case answered:
			return nil, err
		case unavailable:
			i.count(ctx, "error")
			counts.Count(networkOf(ctx))
			return nil, apierr.NotAvailable(err)
		}
		i.count(ctx, "miss")
		return nil, counts.Refuse(networkOf(ctx), err)
	}
	i.count(ctx, "hit")
	b := bearerOf(claims)
	b.verified = now
	i.verified.Set(h, b)
	return b, nil
}

// bearerOf returns the bearer that the claims of a verified token prove. The order of groups does not matter.
func bearerOf(c *tokens.Claims) *bearer {
	h := Identity{Issuer: c.Issuer, Subject: c.Subject}.Hash()
	b := &bearer{hash: h, id: h, expires: c.ExpiresAt, nothing: apierr.RefusedNoGrant}
	if c.GroupsCut {
		b.nothing = apierr.RefusedGroupsCut
	}
	if c.UID != "" {
		b.further = append(b.further, Identity{Issuer: c.Issuer, Subject: c.Subject, UID: c.UID}.Hash())
	}
	slices.Sort(c.Groups)
	for _, group := range slices.Compact(c.Groups) {
		b.further = append(b.further, Identity{Issuer: c.Issuer, Group: group}.Hash())
	}
	if len(b.further) > 0 {
		all := sha256.New()
		for _, h := range b.hashes() {
			all.Write(h[:])
		}
		b.id = Hash(all.Sum(nil))
	}
	return b
}
