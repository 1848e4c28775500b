package auth

import (
	"context"
	"errors"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth/tokens"
)

const (
	// verifiedLife is how long a process takes a token for verified. Then the process checks the signature again, with the
	// signing keys that the issuer has at that time.
	verifiedLife = time.Minute

	// maxVerified is how many verified tokens a process keeps.
	maxVerified = 10_000
)

// bearer holds the identity and the groups that a verified token proves, and the time at which the token expires.
type bearer struct {
	hash     Hash   // of the subject
	bound    Hash   // of the subject with its uid; zero: the token has no uid
	groups   string // the hashes of the groups, one after the other
	expires  time.Time
	verified time.Time
	nothing  apierr.Refusal // the reason if the subject and the groups have no rights
}

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
	return &Issuers{tokens: t, count: count, verified: otter.Must(&otter.Options[Hash, *bearer]{MaximumSize: maxVerified, Logger: &otter.NoopLogger{}})}
}

// verify returns the bearer of a token, and counts refused tokens. The error is an [apierr.Refusal], an apierr, or the
// error of ctx. RateLimited: the client's network has sent too many refused credentials, and this token is refused too, or needs a
// read of the issuer's keys. Unavailable: the signing key is unknown because the issuer cannot be reached.
func (i *Issuers) verify(ctx context.Context, token string, counts refused) (*bearer, error) {
	if i == nil {
		return nil, apierr.RefusedIssuer
	}
	h, now := HashKey(token), time.Now()
	if b, ok := i.verified.GetIfPresent(h); ok && now.Sub(b.verified) < verifiedLife && now.Before(b.expires) {
		return b, nil
	}
	claims, err := i.tokens.Verify(ctx, token, func() error { return counts.within(ctx) })
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
			counts.count(ctx)
			return nil, apierr.NotAvailable(err)
		}
		i.count(ctx, "miss")
		return nil, counts.refuse(ctx, err)
	}
	i.count(ctx, "hit")
	b := &bearer{hash: Identity{Issuer: claims.Issuer, Subject: claims.Subject}.Hash(), expires: claims.ExpiresAt, verified: now, nothing: apierr.RefusedNoGrant}
	if claims.GroupsCut {
		b.nothing = apierr.RefusedGroupsCut
	}
	if claims.UID != "" {
		b.bound = Identity{Issuer: claims.Issuer, Subject: claims.Subject, UID: claims.UID}.Hash()
	}
	for _, group := range claims.Groups {
		h := Identity{Issuer: claims.Issuer, Group: group}.Hash()
		b.groups += string(h[:])
	}
	i.verified.Set(h, b)
	return b, nil
}
