package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/lectern-dev/lectern/shared/http/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/redis/rates"
)

// KeyHeader is the request header with an API key, an administrator's key, or the shared key of a trusted service.
const KeyHeader = "X-Api-Key"

// Guard protects the operations of an API. Guard checks the key of a request, then the key's scope, then the key's
// rate, and answers with the first fault.
type Guard struct {
	verifier  *Verifier
	limiter   *rates.Limiter
	keyRate   rates.Rate
	anonymous rates.Rate
}

// NewGuard returns a Guard. keyRate is the rate of a key that has no rate of its own. anonymous is the rate of a client
// network that sends no key.
func NewGuard(v *Verifier, l *rates.Limiter, keyRate, anonymous rates.Rate) *Guard {
	return &Guard{verifier: v, limiter: l, keyRate: keyRate, anonymous: anonymous}
}

// Protect passes a request to next if its key is a key of the path's {projectId}, has the scope and is within the key's
// rate. Every answer to a valid key has the headers of the rate, unless no rate applies. Protect writes the key's id
// and project to the request's Info.
func (g *Guard) Protect(scope Scope, next httpapi.HandlerFunc) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		key, err := keyOf(r.Header)
		if err != nil {
			return apierr.NotAuthorized().Because(err)
		}
		return g.pass(scope, key, next, w, r)
	}
}

// Holder is [Guard.Protect] for any key of the project, whatever scopes the key has. next gets the key's Principal.
func (g *Guard) Holder(next func(w http.ResponseWriter, r *http.Request, p Principal) error) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		key, err := keyOf(r.Header)
		if err != nil {
			return apierr.NotAuthorized().Because(err)
		}
		project, err := httpapi.PathIdentifier(r, "projectId")
		if err != nil {
			return apierr.NotAuthorized().Because(err)
		}
		p, rate, err := g.check(r.Context(), project, key, 0)
		rate.WriteHeader(w.Header())
		if err != nil {
			return err
		}
		return next(w, r, p)
	}
}

// Optional is [Guard.Protect] for requests with a [KeyHeader], and [Guard.Anonymous] for requests without one.
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

// Anonymous passes a request to next while the client's network is within the rate of requests without a key. Over the
// rate, the client gets RateLimited.
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

// Check reports whether key may be used for the project and scope now, and counts the request against the key's rate.
// Check serves callers whose project and key do not come from the path and [KeyHeader]. The error is the apierr to
// answer (such as Unauthorized, InsufficientScope, RateLimited or Unavailable), or the error of ctx. The Result is zero
// if the key was not verified. Otherwise Check writes the key's id and project to the request's Info.
func (g *Guard) Check(ctx context.Context, projectID, key string, scope Scope) (Principal, rates.Result, error) {
	return g.check(ctx, projectID, key, scope)
}

// check does the work of [Guard.Check]. If scope is 0, check does not look at the key's scopes.
func (g *Guard) check(ctx context.Context, projectID, key string, scope Scope) (Principal, rates.Result, error) {
	p, err := g.verifier.Verify(ctx, projectID, key)
	if err != nil {
		if why, ok := errors.AsType[Refusal](err); ok {
			err = apierr.NotAuthorized().With("projectId", projectID).Because(why)
		}
		return Principal{}, rates.Result{}, err
	}
	info := httpapi.InfoFrom(ctx)
	info.KeyID, info.ProjectID = p.KeyID, p.ProjectID
	rate := g.limiter.Allow(ctx, p.KeyID, g.rateOf(p))
	switch {
	case scope != 0 && !p.Scopes.Has(scope):
		err = apierr.New(apierr.InsufficientScope, "The API key does not have the scope "+scope.String()+".")
	case !rate.Allowed:
		err = tooMany(rate.RetryAfter)
	default:
		err = info.Admit(p.ProjectID)
	}
	return p, rate, err
}

// Still checks again that the key of a request that [Guard.Protect] passed may be used. A handler that has waited calls
// Still before it answers with data. Still does not count against the rate. The error is the apierr to answer, as for
// [Guard.Check], or the error of the request's context.
func (g *Guard) Still(r *http.Request, projectID string, scope Scope) error {
	key, err := keyOf(r.Header)
	if err != nil {
		return apierr.NotAuthorized().Because(err)
	}
	p, err := g.verifier.Verify(r.Context(), projectID, key)
	if why, ok := errors.AsType[Refusal](err); ok {
		return apierr.NotAuthorized().With("projectId", projectID).Because(why)
	}
	if err == nil && !p.Scopes.Has(scope) {
		err = apierr.New(apierr.InsufficientScope, "The API key does not have the scope "+scope.String()+".")
	}
	return err
}

// CheckAddress counts a request without a key against the rate of the client address's network. Over the rate, the
// error is the apierr RateLimited. The empty address has no rate.
func (g *Guard) CheckAddress(ctx context.Context, address string) error {
	if address == "" {
		return nil // no server has set an address
	}
	if rate := g.limiter.Allow(ctx, "anonymous:"+httpapi.Network(address), g.anonymous); !rate.Allowed {
		return tooMany(rate.RetryAfter)
	}
	return nil
}

func tooMany(retryAfter time.Duration) error {
	return apierr.New(apierr.RateLimited, "Too many requests. Try again after the time that Retry-After gives.").
		After(retryAfter)
}

// rateOf returns the rate of p's key. A key without a rate of its own has the default rate. A key's own rate has a
// burst in the same proportion as the default rate. If the default rate is 0, no key has a limit.
func (g *Guard) rateOf(p Principal) rates.Rate {
	if p.Rate == 0 || g.keyRate.PerSecond == 0 {
		return g.keyRate
	}
	burst := int64(p.Rate) * int64(g.keyRate.Burst) / int64(g.keyRate.PerSecond)
	return rates.Rate{PerSecond: p.Rate, Burst: int(min(max(1, burst), rates.Max))}
}

// keyOf returns the key in the headers h. Without the header, the error is [ErrMissing]. If the header is sent twice,
// the error is [ErrMalformed], because the server cannot know which value the client means.
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
