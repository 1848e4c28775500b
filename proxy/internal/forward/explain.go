package forward

import (
	"context"
	"net/http"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/lectern-dev/lectern/proxy/internal/dial"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/ratelimit"
)

// Explanation is what the proxy would do with a request.
type Explanation struct {
	// Refusal is what the caller would be told; nil when the request would be sent.
	Refusal *apierr.Error
	// Why says more about a refusal than the caller is told.
	Why string
	// Preflight says that the request is one, and would be granted.
	Preflight bool
	// Endpoint is the one that allows the request, or that comes nearest to it; "" for none.
	Endpoint string
	// Target is the normalised scheme://host[:port]/path, placeholders as they were sent; "" when the target
	// can not be read.
	Target string
	// Credentials are the ids that would be used.
	Credentials []string
	// Verdicts is what each endpoint of the project and environment says, the best first.
	Verdicts []policy.Verdict
}

// Explain does with a request all that a Handler does, up to the moment of sending: nothing is looked up and
// nothing dialled. Keyed says that the request's key, where one is asked for, is good.
func Explain(s *policy.Snapshot, r *http.Request, keyed bool) (Explanation, error) {
	const room = 1 << 30
	store := &policy.Store{}
	h, err := New(Options{
		Store: store, Pool: dial.NewPool(dial.Options{Guard: dial.NewGuard(nil)}), Keys: anyKey{},
		Tracer: tracenoop.NewTracerProvider(), Meter: metricnoop.NewMeterProvider(),
		MaxTemplatedBody: DefaultMaxTemplatedBody, TemplatedMemory: room, Stall: time.Second,
	})
	if err != nil {
		return Explanation{}, err
	}
	r.Header.Del(KeyHeader)
	if keyed {
		r.Header.Set(KeyHeader, "good")
	}
	e := Explanation{}
	x := &exchange{h: h, w: nowhere{http.Header{}}, r: r, snapshot: s, explained: func(*policy.Request) {}}
	if err := x.serve(); err != nil {
		e.Refusal = apierr.From(err)
	}
	e.Why, e.Endpoint, e.Credentials = x.record.why, x.record.endpoint, x.record.credentials
	e.Preflight = x.record.decision == decisionPreflight
	if x.target != nil {
		e.Target = x.target.AsSent()
	}
	if x.request != nil {
		e.Verdicts = x.scope.Judge(x.request)
	}
	return e, nil
}

// DefaultMaxTemplatedBody is the largest body that values are put into, when nothing else is said.
const DefaultMaxTemplatedBody = 10 << 20

// nowhere takes an answer that nobody reads.
type nowhere struct{ header http.Header }

// Header returns the answer's headers.
func (n nowhere) Header() http.Header { return n.header }

// WriteHeader drops the status.
func (nowhere) WriteHeader(int) {}

// Write drops a part of the body.
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// anyKey finds every key good.
type anyKey struct{}

// Check finds key good.
func (anyKey) Check(_ context.Context, projectID, _ string, _ auth.Scope) (auth.Principal, ratelimit.Result, error) {
	return auth.Principal{ProjectID: projectID}, ratelimit.Result{Allowed: true}, nil
}

// CheckAddress finds every caller good.
func (anyKey) CheckAddress(context.Context, string) error { return nil }
