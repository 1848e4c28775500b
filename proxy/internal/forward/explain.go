package forward

import (
	"errors"
	"net/http"

	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/limits"
)

// Explanation is the proxy's decision about a request, with its reasons.
type Explanation struct {
	// Refusal is the answer that the caller would get; nil when the request would be sent, or its preflight granted.
	Refusal *apierr.Error
	// Why gives details of a refusal that the caller does not see; "" for none.
	Why string
	// Preflight reports that the request is a preflight that would be granted.
	Preflight bool
	// Endpoint is the endpoint that allows the request, or that comes closest to it. "" for none, and if the request
	// lacks a key that the endpoint requires.
	Endpoint string
	// Target is the normalised scheme://host[:port]/path, with its placeholders; "" when the target cannot be read.
	Target string
	// Credentials are the ids that the policy allows the request to use; nil if the policy refuses the request.
	Credentials []string
	// Loose are the ids among Credentials that the policy allows anywhere in a body.
	Loose []string
	// Verdicts are the verdicts of all endpoints of the project and environment, the closest first. Nil for a
	// preflight, and for a request that cannot be parsed.
	Verdicts []policy.Verdict
}

// DefaultMaxTemplatedBody is the default of MAX_TEMPLATED_BODY, the size limit of a body with placeholders, in bytes.
// Explain applies this limit.
const DefaultMaxTemplatedBody = 10 << 20

// Explain takes a request through the steps parse, decide and build of a Handler, and returns the decision. Explain
// resolves no name, dials no target, and applies no limit of rates. With keyed, the request counts as one with a valid
// key.
func Explain(s *policy.Snapshot, r *http.Request, keyed bool) Explanation {
	in, err := parse(r)
	rec := record{incoming: in}
	e := Explanation{}
	if in.target != nil {
		e.Target = in.target.AsSent()
	}
	switch {
	case err != nil:
	case in.preflight:
		err = grant(http.Header{}, r, s, in)
		e.Preflight = err == nil
	default:
		scope := s.Scope(in.project, in.environment)
		var d decision
		d, err = decide(r, in, scope, keyed, newHeldBodies(DefaultMaxTemplatedBody, 8*DefaultMaxTemplatedBody), limits.Holder{})
		defer d.body.release()
		if err == nil {
			_, err = build(in.target, d, DefaultMaxTemplatedBody)
		}
		rec.verdict = d.verdict
		e.Verdicts = scope.Judge(&d.request)
	}
	if err != nil {
		e.Refusal = apierr.From(err)
		if why, ok := errors.AsType[fault](err); ok {
			e.Why = string(why)
		}
	}
	e.Endpoint, e.Credentials = rec.endpoint(), rec.credentials()
	for _, c := range rec.verdict.Credentials {
		if c.IsAnywhereInBody() {
			e.Loose = append(e.Loose, c.ID)
		}
	}
	return e
}
