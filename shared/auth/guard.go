package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/limits"
)

// KeyHeader is the request header with an API key, an administrator's key, or the shared key of a trusted service.
const KeyHeader = "X-Api-Key"

// Guard protects the operations of an API. Guard checks the key or token of a request, then its scope, then its rate, and
// answers with the first fault.
type Guard struct {
	verifier  *Verifier
	limiter   *limits.Limiter
	keyRate   limits.Rate
	anonymous limits.Rate
}

// NewGuard returns a Guard. keyRate is the rate of a key that has no rate of its own. anonymous is the rate of a client
// network that sends no key.
func NewGuard(v *Verifier, l *limits.Limiter, keyRate, anonymous limits.Rate) *Guard {
	return &Guard{verifier: v, limiter: l, keyRate: keyRate, anonymous: anonymous}
}

// Protect passes a request to next if its key or token has rights in the path's {projectId}, has the scope and is within
// its rate. Every answer to a valid key has the headers of the rate, unless no rate applies. Protect writes the key's id
// and project to the request's Info.
func (g *Guard) Protect(scope Scope, next httpapi.HandlerFunc) httpapi.HandlerFunc {
	return g.protect(scope, func(w http.ResponseWriter, r *http.Request, _ Principal) error { return next(w, r) })
}

// ProtectAnyScope is [Guard.Protect] for any key of the project, whatever scopes the key has. next gets the key's Principal.
func (g *Guard) ProtectAnyScope(next func(w http.ResponseWriter, r *http.Request, p Principal) error) httpapi.HandlerFunc {
	return g.protect(0, next)
}

// protect passes a request to next with the principal of its key or token, as [Guard.Protect] describes. If scope is 0,
// protect does not look at scopes.
func (g *Guard) protect(scope Scope, next func(w http.ResponseWriter, r *http.Request, p Principal) error) httpapi.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		p, err := g.admit(w, r, scope)
		if err != nil {
			g.verifier.o.Issuers.challenge(w, err)
			return err
		}
		return next(w, r, p)
	}
}

// admit returns the principal of a request, and writes the headers of its rate. The error is the apierr to answer.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request, scope Scope) (Principal, error) {
	c, err := g.verifier.o.Issuers.credentialOf(r.Header)
	if err != nil {
		return Principal{}, unauthorized(err)
	}
	project, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return Principal{}, unauthorized(ErrUnknown)
	}
	p, rate, err := g.check(r.Context(), project, c, scope)
	rate.WriteHeader(w.Header())
	return p, err
}

// Optional is [Guard.Protect] for requests with a key or token, and [Guard.Anonymous] for requests without one.
func (g *Guard) Optional(scope Scope, next httpapi.HandlerFunc) httpapi.HandlerFunc {
	anonymous, protected := g.Anonymous(next), g.Protect(scope, next)
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := g.verifier.o.Issuers.credentialOf(r.Header); errors.Is(err, ErrMissing) {
			return anonymous(w, r)
		}
		return protected(w, r)
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

// Projects passes a request to next with a function that lists the principals of its key or token by project id, as
// [Verifier.Projects] does. next returns the errors of the function. The look-up is one over all projects. So each request
// counts against the rate of requests without a key first.
func (g *Guard) Projects(next func(w http.ResponseWriter, r *http.Request, list func(after string, limit int) ([]Principal, error)) error) httpapi.HandlerFunc {
	return g.Anonymous(func(w http.ResponseWriter, r *http.Request) error {
		err := next(w, r, func(after string, limit int) ([]Principal, error) {
			c, err := g.verifier.o.Issuers.credentialOf(r.Header)
			if err != nil {
				return nil, unauthorized(err)
			}
			all, err := g.verifier.Projects(r.Context(), c, after, limit)
			return all, unauthorized(err)
		})
		g.verifier.o.Issuers.challenge(w, err)
		return err
	})
}

// Check reports whether key may be used for the project and scope now, and counts the request against the key's rate. key
// is an API key or a token. Check serves callers whose project and key do not come from the path and [KeyHeader]. The
// error is the apierr to answer, or the error of ctx. The apierr is Unauthorized, InsufficientScope, RateLimited or
// Unavailable, for example. The Result is zero if the key was not verified. Otherwise Check writes the key's id, project
// and expiry to the request's Info.
func (g *Guard) Check(ctx context.Context, projectID, key string, scope Scope) (Principal, limits.Result, error) {
	return g.check(ctx, projectID, g.verifier.o.Issuers.parseCredential(key), scope)
}

// check does the work of [Guard.Check]. If scope is 0, check does not look at scopes.
func (g *Guard) check(ctx context.Context, projectID string, c Credential, scope Scope) (Principal, limits.Result, error) {
	p, err := g.verify(ctx, projectID, c)
	if err != nil {
		return Principal{}, limits.Result{}, err
	}
	info := httpapi.InfoFrom(ctx)
	info.KeyID, info.ProjectID, info.KeyExpires = p.KeyID, p.ProjectID, p.ExpiresAt
	rate := g.limiter.Allow(ctx, p.KeyID+p.counted, g.rateOf(p))
	switch {
	case scope != 0 && !p.Scopes.Has(scope):
		err = noScope(scope)
	case !rate.Allowed:
		err = tooMany(rate.RetryAfter)
	default:
		err = info.Admit(p.ProjectID)
	}
	return p, rate, err
}

// verify returns the principal of a key or token in the project. The error is the apierr to answer, or the error of ctx.
func (g *Guard) verify(ctx context.Context, projectID string, c Credential) (p Principal, err error) {
	p, err = g.verifier.principal(ctx, projectID, c)
	err = unauthorized(err)
	if e, ok := errors.AsType[*apierr.Error](err); ok && e.Code() == apierr.Unauthorized {
		err = e.With("projectId", projectID)
	}
	return p, err
}

// unauthorized returns the apierr to answer if err wraps an [apierr.Refusal], and err otherwise.
func unauthorized(err error) error {
	if _, answer := errors.AsType[*apierr.Error](err); answer {
		return err
	}
	if why, ok := errors.AsType[apierr.Refusal](err); ok {
		return apierr.NotAuthorized(why)
	}
	return err
}

func noScope(scope Scope) error {
	return apierr.New(apierr.InsufficientScope, "The API key does not have the scope "+scope.String()+".")
}

// Recheck checks again that the key or token of a request that [Guard.Protect] passed may be used. A handler that has
// waited calls Recheck before it answers with data. Recheck does not count against the rate. The error is the apierr to
// answer, as for [Guard.Check], or the error of the request's context.
func (g *Guard) Recheck(r *http.Request, projectID string, scope Scope) error {
	c, err := g.verifier.o.Issuers.credentialOf(r.Header)
	if err != nil {
		return unauthorized(err)
	}
	p, err := g.verify(r.Context(), projectID, c)
	if err == nil && !p.Scopes.Has(scope) {
		err = noScope(scope)
	}
	return err
}

// CheckAddress counts a request without a key against the rate of the client address's network. Over the rate, the
// error is the apierr RateLimited. The empty address has no rate.
func (g *Guard) CheckAddress(ctx context.Context, address string) error {
	if address == "" {
		return nil // no server has set an address
	}
	if rate := g.limiter.Allow(ctx, "anonymous:"+limits.NetworkOf(address), g.anonymous); !rate.Allowed {
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
func (g *Guard) rateOf(p Principal) limits.Rate {
	if p.Rate == 0 || g.keyRate.PerSecond == 0 {
		return g.keyRate
	}
	burst := int64(p.Rate) * int64(g.keyRate.Burst) / int64(g.keyRate.PerSecond)
	return limits.Rate{PerSecond: p.Rate, Burst: int(min(max(1, burst), limits.MaxRate))}
}
