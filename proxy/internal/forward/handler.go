// Package forward takes a request through the proxy in steps. The right column shows the result of a step:
//
//	parse     reads what the caller sends                incoming
//	checkKey  checks the key, or counts for the address  keyed
//	admit     counts a request without a key             leave
//	decide    asks the policy, with all credentials      decision
//	enter     counts the request for its endpoint        leave
//	build     inserts the credentials                    outgoing
//	send      calls the target                           the target's answer
//	judge     removes the credentials from the answer
//
// The policy decides before the proxy connects. The target's address is only known while the proxy connects, so the
// guard of package egress checks the address then.
//
// The package follows no redirect, and keeps credential values out of errors, logs and traces.
package forward

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/relay"
	"github.com/lectern-dev/lectern/shared/limits"

	"github.com/lectern-dev/lectern/proxy/internal/dial"
	"github.com/lectern-dev/lectern/proxy/policy"
)

// Keys checks API keys, and limits the rate of callers without a key.
type Keys interface {
	// Check returns an error unless key is valid for the project and scope, and within its rate; see auth.Guard.
	Check(ctx context.Context, projectID, key string, scope auth.Scope) (auth.Principal, limits.Result, error)
	// CheckAddress counts a request without a key against its client's rate. Over the rate, the error is the refusal;
	// see auth.Guard.
	CheckAddress(ctx context.Context, address string) error
}

// Options holds the parts that a Handler uses, and the limits of requests.
type Options struct {
	// Store holds the policy. Required.
	Store *policy.Store
	// Pool makes the connections. Required.
	Pool *dial.Pool
	// Keys checks API keys. Nil: a key that an endpoint may require gets the answer 503, and client addresses have no
	// rate.
	Keys Keys
	// Rates limits the rates of endpoints. Each endpoint has a key of its own. Nil: in this process alone.
	Rates *limits.Limiter
	// Tracer makes a span of each call to a target. Required.
	Tracer trace.TracerProvider
	// Meter makes the metrics. Required.
	Meter metric.MeterProvider
	// MaxTemplatedBody bounds a body with placeholders, in bytes, before and after their replacement. Required.
	MaxTemplatedBody int64
	// TemplatedMemory bounds all bodies with placeholders together, in bytes. One endpoint may take half of the memory,
	// and one client address without a key a quarter. Required.
	TemplatedMemory int64
	// ClientConcurrent bounds the requests without a key that one client address may have in flight. 0: no bound.
	ClientConcurrent int
	// TotalTimeout bounds a request that is not a stream, unless its endpoint sets a total time. 0: no bound.
	TotalTimeout time.Duration
	// Stall bounds how long an HTTP/2 caller may accept no byte of an answer. On HTTP/1 the server has a limit of its
	// own. Required.
	Stall time.Duration
	// Now is the clock of rates and records. Nil: time.Now.
	Now func() time.Time
}

// Handler is the http.Handler of the proxy. A Handler forwards the requests that the policy and the limits allow, and
// answers preflights and refusals itself.
type Handler struct {
	o       Options
	tracer  trace.Tracer
	metrics *metrics
	running limits.Shares // slots, by endpoint and by client
	bodies  *heldBodies
	buffers relay.Buffers
}

// New returns a Handler for the policy in o.Store. The error means that the metrics could not be created. When the
// policy changes, the Handler drops the connections of removed or changed endpoints.
func New(o Options) (*Handler, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rates == nil {
		o.Rates = limits.NewLimiter(nil, limits.LimiterOptions{Now: o.Now})
	}
	m, err := newMetrics(o.Meter)
	if err != nil {
		return nil, err
	}
	h := &Handler{
		o: o, tracer: o.Tracer.Tracer("github.com/lectern-dev/lectern/proxy"), metrics: m,
		bodies: newHeldBodies(o.MaxTemplatedBody, o.TemplatedMemory), buffers: relay.Buffers{Clear: true},
	}
	o.Store.OnReplace(h.forget)
	return h, nil
}

// forget drops the transports of endpoints that s does not contain, or contains with other connection settings. The
// policy store calls forget with each new Snapshot.
func (h *Handler) forget(s *policy.Snapshot) {
	keep := map[dial.Key]bool{}
	for _, e := range s.Endpoints() {
		keep[transportKey(e)] = true
	}
	h.o.Pool.Keep(keep)
}

// ServeHTTP forwards a request to its target, answers a preflight, or refuses the request. ServeHTTP then writes the
// audit record and the metrics, even if the answer is aborted.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &record{began: h.o.Now()}
	h.metrics.inFlight.Add(1)
	snapshot := h.o.Store.Current()
	defer func() { h.finish(r, rec) }() // even if the answer is aborted
	if err := h.serve(w, r, snapshot, rec); err != nil {
		refuse(w, r, snapshot, rec, err)
	}
	rec.complete = true
}

// serve answers the request, or returns the refusal. serve also writes the data of the request to rec.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, snapshot *policy.Snapshot, rec *record) error {
	in, err := parse(r)
	rec.incoming = in
	httpapi.InfoFrom(r.Context()).ProjectID = in.project
	if err != nil {
		return err
	}
	if in.preflight {
		return h.answerPreflight(w, r, snapshot, in, rec)
	}
	scope := snapshot.Scope(in.project, in.environment)
	keyed, err := h.checkKey(w, r, in, scope)
	if err != nil {
		return err
	}
	var client limits.Holder // with a key: none
	if !keyed {
		client = limits.Network(httpapi.InfoFrom(r.Context()).ClientAddress)
	}
	leaveClient, err := h.admit(client)
	if err != nil {
		return err
	}
	defer leaveClient()
	d, err := decide(r, in, scope, keyed, h.bodies, client)
	defer d.body.release()
	rec.verdict = d.verdict
	rec.bytesIn.Add(d.body.length())
	if err != nil {
		return err
	}
	leaveEndpoint, err := h.enter(r.Context(), d.verdict.Endpoint)
	if err != nil {
		return err
	}
	defer leaveEndpoint()
	out, err := build(in.target, d, h.o.MaxTemplatedBody)
	if err != nil {
		return err
	}
	return h.send(w, r, out, d.verdict, in, rec)
}

// checkKey checks the request's API key if an endpoint for the origin requires a key, and writes the headers of the
// key's rate to w. Without a key to check, checkKey counts the request by checkAddress. keyed reports whether the
// request has a valid key.
func (h *Handler) checkKey(w http.ResponseWriter, r *http.Request, in incoming, scope *policy.Scope) (keyed bool, err error) {
	ctx, keys := r.Context(), h.o.Keys
	sent := r.Header[KeyHeader]
	if len(sent) == 0 || !scope.WantsKey(in.origin) {
		return false, h.checkAddress(ctx)
	}
	switch {
	case len(sent) > 1:
		return false, apierr.NotAuthorized(auth.ErrMalformed).With("projectId", in.project)
	case keys == nil:
		return false, apierr.NotAvailable(errNoKeys)
	}
	_, rate, err := keys.Check(ctx, in.project, sent[0], auth.ProxyUse)
	rate.WriteHeader(w.Header())
	return err == nil, err
}

// checkAddress counts a request without a key against the rate of its client's address. Over the rate, the error is the
// refusal. Without Options.Keys, there is no rate.
func (h *Handler) checkAddress(ctx context.Context) error {
	if h.o.Keys == nil {
		return nil
	}
	return h.o.Keys.CheckAddress(ctx, httpapi.InfoFrom(ctx).ClientAddress)
}

// Refuse answers a request with err, in the form of the proxy's own answers, and writes no audit record. The server
// calls Refuse for requests that the server itself refuses.
func (h *Handler) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	snapshot := h.o.Store.Current()
	in, _ := parse(r) // the fields before a fault are set
	refuse(w, r, snapshot, &record{incoming: in}, err)
}

// refuse answers a request with err by httpapi.WriteError, and writes the decision and its reason to rec. A page of an
// allowed origin may read the answer.
func refuse(w http.ResponseWriter, r *http.Request, snapshot *policy.Snapshot, rec *record, err error) {
	rec.decision, rec.status = apierr.From(err).Code(), apierr.From(err).Status()
	if why, ok := errors.AsType[fault](err); ok {
		rec.why = string(why)
	}
	h := w.Header()
	h[SuccessHeader] = []string{"false"}
	allowOrigin(h, corsOrigin(snapshot, rec.incoming))
	httpapi.WriteError(w, r, err)
}
