package forward

import (
	"errors"
	"net/http"
	"time"

	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/http/apierr"
)

// Explanation is the proxy's decision about a request, with its reasons.
type Explanation struct {
	// Refusal is the answer that the caller would get; nil when the request would be sent.
	Refusal *apierr.Error
	// Why gives details of a refusal that the caller does not see.
	Why string
	// Preflight reports that the request is a preflight that would be granted.
	Preflight bool
	// Endpoint is the endpoint that allows the request, or that comes closest to it; "" for none.
	Endpoint string
	// Target is the normalised scheme://host[:port]/path, with its placeholders; "" when the target cannot be read.
	Target string
	// Credentials are the ids that the request would use.
	Credentials []string
	// Loose are those of them that may stand anywhere in a body.
	Loose []string
	// Verdicts are the verdicts of all endpoints of the project and environment, the best first.
	Verdicts []policy.Verdict
}

// DefaultMaxTemplatedBody is the default bound of a body with placeholders, in bytes.
const DefaultMaxTemplatedBody = 10 << 20

// Explain takes a request through the steps of a Handler up to the point of sending. It resolves no name and dials no
// target. keyed reports that the request has a valid key.
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
		d, err = decide(r, in, scope, keyed, newHeldBodies(DefaultMaxTemplatedBody, 8*DefaultMaxTemplatedBody, time.Minute), "")
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
