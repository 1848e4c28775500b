// Package forward owns a request's way through the proxy: it reads what the caller wants, has it decided,
// puts the credentials in, sends it, and gives the answer back without them. Every refusal happens before
// anything is dialled; only addresses are judged while dialling, as they are not known earlier.
//
// It stores nothing, follows no redirect, and tells nobody a credential's value: not in an error, not in a
// log, not in a trace.
package forward

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lectern-dev/lectern/proxy/internal/dial"
	"github.com/lectern-dev/lectern/proxy/internal/target"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/ratelimit"
	"github.com/lectern-dev/lectern/shared/wire"
)

// The headers that callers speak to the proxy with.
const (
	ProjectHeader     = "X-Project-Id"
	EnvironmentHeader = "X-Environment"
	KeyHeader         = "X-Proxy-Api-Key"
	TemplatingHeader  = "X-Use-Body-Templating"
	// SuccessHeader tells the target's answers, "true", from the proxy's own, "false".
	SuccessHeader = "X-Proxy-Worker-Success"
)

// Keys checks API keys and the rate of callers without one.
type Keys interface {
	// Check tells whether key is good for the project and scope; see auth.Guard.
	Check(ctx context.Context, projectID, key string, scope auth.Scope) (auth.Principal, ratelimit.Result, error)
	// CheckAddress counts a request without a key against its client's rate; see auth.Guard.
	CheckAddress(ctx context.Context, address string) error
}

// Rates keeps the rates of endpoints.
type Rates interface {
	Allow(ctx context.Context, key string, rate ratelimit.Rate) ratelimit.Result
}

// Options is what a Handler is made of.
type Options struct {
	// Store holds the policy. Required.
	Store *policy.Store
	// Pool makes the connections. Required.
	Pool *dial.Pool
	// Keys checks API keys. Nil: no key can be checked, and endpoints that ask for one answer 503.
	Keys Keys
	// Rates keeps the rates of endpoints. Nil: kept in process.
	Rates Rates
	// Tracer makes a span of each call to a target. Required.
	Tracer trace.TracerProvider
	// Meter takes the figures. Required.
	Meter metric.MeterProvider
	// MaxTemplatedBody bounds a body that values are put into, before and after, in bytes. Required.
	MaxTemplatedBody int64
	// TemplatedMemory bounds all bodies that are held at a time to put values into, in bytes. Required.
	TemplatedMemory int64
	// Stall is how long a caller on HTTP/2 may take nothing of an answer; on HTTP/1 the server keeps that time.
	// Required.
	Stall time.Duration
	// Now is the clock of rates and records. Nil: time.Now.
	Now func() time.Time
}

// Handler is the proxy.
type Handler struct {
	o       Options
	tracer  trace.Tracer
	metrics *metrics
	gates   gates
	memory  atomic.Int64 // held by bodies that values are put into
	copies  *copies
}

// New returns a Handler.
func New(o Options) (*Handler, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rates == nil {
		o.Rates = newBuckets(o.Now)
	}
	m, err := newMetrics(o.Meter)
	if err != nil {
		return nil, err
	}
	h := &Handler{o: o, tracer: o.Tracer.Tracer("github.com/lectern-dev/lectern/proxy"), metrics: m}
	h.copies = newCopies()
	o.Store.OnReplace(h.forget)
	return h, nil
}

// forget drops what was kept for endpoints that are no more.
func (h *Handler) forget(s *policy.Snapshot) {
	keep := map[dial.Key]bool{}
	names := map[string]bool{}
	for _, e := range s.Endpoints() {
		keep[dial.Key{Endpoint: e.Name, Roots: e.RootsID}] = true
		names[e.Name] = true
	}
	h.o.Pool.Keep(keep)
	h.gates.keep(names)
}

// exchange is one request on its way.
type exchange struct {
	h      *Handler
	w      http.ResponseWriter
	r      *http.Request
	record record

	snapshot *policy.Snapshot
	scope    *policy.Scope
	origin   string // "" when none was sent
	target   *target.Target
	verdict  policy.Verdict
	request  *policy.Request // what it is about
	keyed    bool
	complete bool      // it was answered whole
	sending  *sentBody // the caller's body that streams to the target; nil: none

	// explained is told what would be sent instead of sending it. Nil: it is sent.
	explained func(*policy.Request)
}

// ServeHTTP takes one request to its target, or refuses it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{h: h, w: w, r: r}
	x.record.began = h.o.Now()
	if r.ProtoMajor != 1 {
		// An answer may be long in coming, and long silent; who writes sets a deadline for each write.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	}
	h.metrics.inFlight.Add(1)
	var release func()
	x.snapshot, release = h.o.Store.Acquire()
	defer release()
	defer x.finish() // also when the connection is being given up
	if err := x.serve(); err != nil {
		x.refuse(err)
	}
	x.complete = true
}

// serve answers the request, or returns why it is refused.
func (x *exchange) serve() error {
	if err := x.readOrigin(); err != nil {
		return err
	}
	if isUpgrade(x.r) {
		return apierr.New(apierr.UpgradeNotSupported, "The proxy carries requests and answers; it does not upgrade connections (no WebSocket, no CONNECT).")
	}
	preflight := isPreflight(x.r)
	if !preflight {
		if err := x.readScope(); err != nil {
			return err
		}
	}
	var err error
	if x.target, err = readTarget(x.r.URL.RawQuery); err != nil {
		return err
	}
	x.record.destination = x.target.Address()
	if preflight {
		return x.preflight()
	}
	if err := x.readKey(); err != nil {
		return err
	}
	return x.decideAndForward()
}

// readOrigin notes who asks, as far as a browser tells.
func (x *exchange) readOrigin() error {
	values, sent := x.r.Header["Origin"]
	if !sent {
		return nil
	}
	if len(values) != 1 || !policy.ValidOrigin(values[0]) {
		return apierr.New(apierr.OriginNotAllowed, "The Origin header is not the origin of a page: a scheme, a host and a port. (\"null\" stands for a sandboxed frame or a file, and is never allowed.)")
	}
	x.origin, x.record.origin = values[0], values[0]
	return nil
}

// readScope finds the endpoints that the request may be for.
func (x *exchange) readScope() error {
	var values [2]string
	for i, header := range []struct{ key, name string }{{ProjectHeader, "X-Project-ID"}, {EnvironmentHeader, "X-Environment"}} {
		sent := x.r.Header[header.key]
		if len(sent) != 1 || !wire.ValidIdentifier(sent[0]) {
			given := strings.Join(sent, ", ")
			return apierr.BadParameter(header.name, given, "the header exactly once, 1 to 256 bytes of UTF-8")
		}
		values[i] = sent[0]
	}
	x.record.project, x.record.environment = values[0], values[1]
	httpapi.InfoFrom(x.r.Context()).ProjectID = values[0]
	x.scope = x.snapshot.Scope(values[0], values[1])
	return nil
}

// readKey checks the API key where an endpoint may ask for one, and the caller's rate where none does.
func (x *exchange) readKey() error {
	ctx, keys := x.r.Context(), x.h.o.Keys
	sent := x.r.Header[KeyHeader]
	if len(sent) == 0 || !x.scope.WantsKey(x.origin) {
		if keys == nil {
			return nil
		}
		return keys.CheckAddress(ctx, httpapi.InfoFrom(ctx).ClientAddress)
	}
	switch {
	case len(sent) > 1:
		return x.unauthorized(auth.ErrMalformed)
	case keys == nil:
		return apierr.NotAvailable(errNoKeys)
	}
	_, rate, err := keys.Check(ctx, x.record.project, sent[0], auth.ProxyUse)
	rate.WriteHeader(x.w.Header())
	x.keyed = err == nil
	return err
}

func (x *exchange) unauthorized(why error) error {
	return apierr.NotAuthorized().With("projectId", x.record.project).Because(why)
}

// decideAndForward has the request decided, with all credentials that it wants, and sends it.
func (x *exchange) decideAndForward() error {
	out := newOutgoing(x.r)
	request := &policy.Request{
		Origin: x.origin, Keyed: x.keyed, Method: x.r.Method,
		Scheme: x.target.Scheme, Port: x.target.Port, URL: x.target.AsSent(),
		Uses: out.uses,
	}
	for _, id := range x.target.IDs() {
		request.Uses = append(request.Uses, policy.Use{ID: id, Place: policy.InURL})
	}
	if err := x.decide(request); err != nil {
		return err
	}
	leave, err := x.enter(x.verdict.Endpoint)
	if err != nil {
		return err
	}
	defer leave()
	if wantsTemplating(x.r) {
		if err := x.holdBody(out); err != nil {
			return err
		}
		defer out.drop(x.h)
		if len(out.body.IDs) > 0 {
			for _, id := range out.body.IDs {
				request.Uses = append(request.Uses, policy.Use{ID: id, Place: policy.InBody})
			}
			if err := x.decide(request); err != nil {
				return err
			}
		}
	} else if most := x.verdict.Endpoint.Limits.RequestBytes; most > 0 && x.r.ContentLength > most {
		return tooLarge(most)
	}
	if err := x.fill(out); err != nil {
		return err
	}
	if x.explained != nil {
		x.explained(request)
		return nil
	}
	return x.forward(out)
}

// decide asks the policy, and notes what it says.
func (x *exchange) decide(request *policy.Request) error {
	x.request = request
	x.verdict = x.scope.Decide(request)
	if x.verdict.Endpoint != nil && x.verdict.Fault > policy.NoKey {
		x.record.endpoint = x.verdict.Endpoint.Name
	}
	x.record.credentials = x.record.credentials[:0]
	for _, c := range x.verdict.Credentials {
		x.record.credentials = append(x.record.credentials, c.ID)
	}
	if x.verdict.Fault == policy.None {
		return nil
	}
	x.record.why = x.verdict.String()
	return refusal(&x.verdict, request, x.record.project)
}

// enter counts the request against its endpoint's limits until leave is called.
func (x *exchange) enter(e *policy.Endpoint) (leave func(), err error) {
	if e.Limits.PerSecond > 0 {
		rate := x.h.o.Rates.Allow(x.r.Context(), "proxy:"+e.Name, ratelimit.Rate{PerSecond: e.Limits.PerSecond, Burst: e.Limits.Burst})
		if !rate.Allowed {
			return nil, tooMany("too many requests come to this endpoint", max(rate.RetryAfter, time.Millisecond))
		}
	}
	g := x.h.gates.of(e.Name)
	if n := g.Add(1); e.Limits.Concurrent > 0 && n > int64(e.Limits.Concurrent) {
		g.Add(-1)
		return nil, tooMany("too many requests to this endpoint run at a time", time.Second)
	}
	return func() { g.Add(-1) }, nil
}

// refuse answers with err, readable for the caller's page where its origin is allowed.
func (x *exchange) refuse(err error) {
	if x.record.status != 0 {
		panic(http.ErrAbortHandler) // the answer has begun
	}
	x.record.decision = apierr.From(err).Code()
	h := x.w.Header()
	if x.sending.unfinished() && x.r.ProtoMajor == 1 {
		h["Connection"] = closing
	}
	h[SuccessHeader] = []string{"false"}
	if x.mayRead() {
		x.allowOrigin(h)
	}
	x.record.status = apierr.From(err).Status()
	httpapi.WriteError(x.w, x.r, err)
}

func isUpgrade(r *http.Request) bool {
	if r.Method == http.MethodConnect || len(r.Header["Upgrade"]) > 0 {
		return true
	}
	for _, line := range r.Header["Connection"] {
		for token := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return true
			}
		}
	}
	return false
}

// wantsTemplating tells whether values are to be put into the body.
func wantsTemplating(r *http.Request) bool {
	sent := r.Header[TemplatingHeader]
	return len(sent) == 1 && sent[0] == "true" &&
		slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method)
}
