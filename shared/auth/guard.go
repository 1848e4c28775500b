package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/ratelimit"
)

// KeyHeader is the request header that carries an API key, and a shared key of a trusted service.
const KeyHeader = "X-Api-Key"

// Guard protects operations: it checks the key, then its scope, then its rate, and answers with the first fault.
type Guard struct {
	verifier  *Verifier
	limiter   *ratelimit.Limiter
	keyRate   ratelimit.Rate
	anonymous ratelimit.Rate
}

// NewGuard makes a Guard. keyRate is the rate of a key that has none of its own, anonymous that of a
// client address where no key is asked for.
func NewGuard(v *Verifier, l *ratelimit.Limiter, keyRate, anonymous ratelimit.Rate) *Guard {
	return &Guard{verifier: v, limiter: l, keyRate: keyRate, anonymous: anonymous}
}

// Protect lets requests with a key for the path's {projectId} through to next, when the key has scope
// and is within its rate. Every answer to a valid key bears the rate's headers. The request's Info names
// the key.
func (g *Guard) Protect(scope Scope, next httpapi.HandlerFunc) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		key, err := keyOf(r.Header)
		if err != nil {
			return apierr.NotAuthorized().Because(err)
		}
		return g.pass(scope, key, next, w, r)
	}
}

// Optional does as [Guard.Protect] when a key is sent, and as [Guard.Anonymous] when none is.
func (g *Guard) Optional(scope Scope, next httpapi.HandlerFunc) httpapi.HandlerFunc {
	anonymous := g.Anonymous(next)
	return func(w http.ResponseWriter, r *http.Request) error {
		key, err := keyOf(r.Header)
		switch {
		case errors.Is(err, ErrMissing):
			return anonymous(w, r)
		case err != nil:
			return apierr.NotAuthorized().Because(err)
		}
		return g.pass(scope, key, next, w, r)
	}
}

// Anonymous lets requests through to next while their client's address is within the rate of those
// that bear no key.
func (g *Guard) Anonymous(next httpapi.HandlerFunc) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := g.CheckAddress(r.Context(), httpapi.InfoFrom(r.Context()).ClientAddress); err != nil {
			return err
		}
		return next(w, r)
	}
}

func (g *Guard) pass(scope Scope, key string, next httpapi.HandlerFunc, w http.ResponseWriter, r *http.Request) error {
	project, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return apierr.NotAuthorized().Because(err)
	}
	_, rate, err := g.Check(r.Context(), project, key, scope)
	rate.WriteHeader(w.Header())
	if err != nil {
		return err
	}
	return next(w, r)
}

// Check reports whether key may be used for the project and scope now, and counts the request against its rate. It is
// for callers that have project and key from elsewhere than the path and [KeyHeader]. The error is the apierr to
// answer (Unauthorized, InsufficientScope, RateLimited or Unavailable), or the error of ctx. The Result is zero when
// the key is not valid. Check writes the key's id and project to the request's Info.
func (g *Guard) Check(ctx context.Context, projectID, key string, scope Scope) (Principal, ratelimit.Result, error) {
	p, err := g.verifier.Verify(ctx, projectID, key)
	if err != nil {
		if why, ok := errors.AsType[Refusal](err); ok {
			err = apierr.NotAuthorized().With("projectId", projectID).Because(why)
		}
		return Principal{}, ratelimit.Result{}, err
	}
	info := httpapi.InfoFrom(ctx)
	info.KeyID, info.ProjectID = p.KeyID, p.ProjectID

	rate := g.limiter.Allow(ctx, p.KeyID, g.rateOf(p))
	switch {
	case !p.Scopes.Has(scope):
		return p, rate, apierr.New(apierr.InsufficientScope, "The API key does not have the scope "+scope.String()+".")
	case !rate.Allowed:
		return p, rate, tooMany(rate.RetryAfter)
	}
	return p, rate, nil
}

// CheckAddress counts a request without a key against the rate of its client's address. The error is
// the apierr RateLimited.
func (g *Guard) CheckAddress(ctx context.Context, address string) error {
	if address == "" {
		return nil // no server has set it
	}
	if rate := g.limiter.Allow(ctx, "anonymous:"+Network(address), g.anonymous); !rate.Allowed {
		return tooMany(rate.RetryAfter)
	}
	return nil
}

func tooMany(retryAfter time.Duration) error {
	return apierr.New(apierr.RateLimited, "Too many requests. Try again after the time that Retry-After gives.").
		After(retryAfter)
}

// rateOf is the rate of p: its own, with a burst in the proportion of the default's, or the default.
func (g *Guard) rateOf(p Principal) ratelimit.Rate {
	if p.Rate == 0 || g.keyRate.PerSecond == 0 {
		return g.keyRate
	}
	burst := int64(p.Rate) * int64(g.keyRate.Burst) / int64(g.keyRate.PerSecond)
	return ratelimit.Rate{PerSecond: p.Rate, Burst: int(min(max(1, burst), ratelimit.Max))}
}

// keyOf returns the key that the headers carry. One sent twice is malformed, as there is no telling
// which is meant.
func keyOf(h http.Header) (string, error) {
	switch values := h[KeyHeader]; {
	case len(values) == 0:
		return "", ErrMissing
	case len(values) > 1:
		return "", ErrMalformed
	default:
		return values[0], nil
	}
}
