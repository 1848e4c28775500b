package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/cors"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/telemetry"
	"github.com/lectern-dev/lectern/shared/trustedkeys"
	"github.com/lectern-dev/lectern/shared/wire"
)

// chain is everything between a listener and a service's handlers. The layers of the chain from the outside in are:
// recovery, request id, origin, access line and metrics, route, trace, CORS, compression, headers, handler.
//
// The request's [exchange] wraps net/http's ResponseWriter. If the request is traced, otelhttp's writer wraps the
// exchange. If the answer may be compressed, gzhttp's writer wraps these writers. The handler gets the outermost
// writer.
type chain struct {
	config    Config
	telemetry *telemetry.Telemetry
	router    *httpapi.Router
	origin    origin
	metrics   *metrics
	draining  *atomic.Bool

	slots         *limits.Pool // requests in flight; nil: no bound
	answers       *limits.Pool // bytes of answers that are held; nil: no bound
	refusalLogged atomic.Int64 // when refused requests were last logged, in Unix seconds
	refuse        func(w http.ResponseWriter, r *http.Request, err error)

	traced       http.Handler                        // nil when tracing is off
	cors         *cors.Cors                          // nil when off
	corsOnErrors *cors.Cors                          // of a plain listener; nil: its errors have no headers of CORS
	compress     func(http.Handler) http.HandlerFunc // nil on the internal listener
	headers      headers                             // of every answer
	plain        http.Header                         // of every answer in place of headers; nil: headers
	added        http.Header                         // set after headers
	quiet        func(route string) bool             // routes that are neither traced nor logged: machines request them every few seconds
}

// headers holds values of headers that the answers of a listener share. A handler must not change these slices: to
// change a header of one answer, set a new slice.
type headers struct {
	noSniff, policy, cache, vary, connectionClose []string
}

// newChain returns the chain of one listener. If public is set, the chain bounds the requests in flight and the bytes
// of answers by MAX_IN_FLIGHT and ANSWER_MEMORY. The error reports metrics or a compression that cannot be set up.
func newChain(o Options, router *httpapi.Router, m *metrics, draining *atomic.Bool, public bool) (*chain, error) {
	c := &chain{
		config:    o.Config,
		telemetry: o.Telemetry,
		router:    router,
		metrics:   m,
		draining:  draining,
		origin: origin{
			publicURL: strings.TrimSuffix(o.Config.PublicURL, "/"), trusted: o.Config.TrustedProxies, edge: trustedkeys.New(o.Config.EdgeKeys),
			inside: o.Inside || !public,
		},
		headers: headers{
			noSniff:         []string{"nosniff"},
			policy:          []string{"default-src 'none'; frame-ancestors 'none'"},
			cache:           []string{"private, no-cache"},
			vary:            []string{"X-Api-Key, Authorization, Accept, Accept-Encoding"},
			connectionClose: []string{"close"},
		},
		quiet:  func(string) bool { return false },
		refuse: httpapi.WriteError,
	}
	var once sync.Once
	c.origin.unnamed = func(r *http.Request) {
		once.Do(func() {
			o.Telemetry.Logger.LogAttrs(r.Context(), slog.LevelWarn, "a proxy in front takes requests by https, and PUBLIC_URL is not set: links have the request's Host. "+
				"Set PUBLIC_URL, or the proxy's CIDRs as TRUSTED_PROXIES, to have links with the host that clients use")
		})
	}
	if o.Refuse != nil && public {
		c.refuse = o.Refuse
	}
	if o.Telemetry.Tracing() {
		c.traced = otelhttp.NewMiddleware("request",
			otelhttp.WithTracerProvider(o.Telemetry.TracerProvider),
			otelhttp.WithMeterProvider(noopmetric.NewMeterProvider()), // this package has its own metrics, traced or not
			otelhttp.WithPropagators(o.Telemetry.Propagator),
			otelhttp.WithServerName(o.Service), // the client chooses Host, and so could make any number of names
			otelhttp.WithSpanNameFormatter(spanName),
			otelhttp.WithPublicEndpointFn(func(r *http.Request) bool { return public && c.fromStranger(r) }),
		)(http.HandlerFunc(c.serveTraced))
	}
	if !public {
		c.quiet = isOperational
		c.headers.cache = []string{"no-store"}
		c.headers.vary = nil
		return c, nil
	}
	c.slots = limits.NewPool("requests", int64(o.Config.MaxInFlight), limits.Eighth(int64(o.Config.MaxInFlight)))
	c.answers = limits.NewPool("answers", o.Config.AnswerMemory, o.Config.AnswerMemory/4)
	if err := limits.Measure(o.Telemetry.MeterProvider, c.slots, c.answers); err != nil {
		return nil, fmt.Errorf("httpserver: metrics: %w", err)
	}
	if o.Plain != nil {
		c.plain = o.Plain
		if o.CORSOnErrors {
			c.corsOnErrors = newCORS(o.Config)
		}
		return c, nil
	}
	c.added = o.Headers
	var err error
	if c.compress, err = newCompression(); err != nil {
		return nil, fmt.Errorf("httpserver: compression: %w", err)
	}
	if c.cors = newCORS(o.Config); c.cors != nil {
		c.headers.vary = []string{c.headers.vary[0] + ", Origin"}
	}
	return c, nil
}

// newCORS returns the handler of CORS for the origins in CORS_ALLOWED_ORIGINS, which allows GET and HEAD. If no origin
// is allowed, newCORS returns nil.
func newCORS(cfg Config) *cors.Cors {
	if len(cfg.CORSAllowedOrigins) == 0 {
		return nil
	}
	return cors.New(cors.Options{
		AllowedOrigins: cfg.CORSAllowedOrigins,
		AllowedMethods: []string{http.MethodGet, http.MethodHead},
		// All headers that a preflight asks for. A page that traces adds headers, such as baggage, to all its requests.
		AllowedHeaders: []string{"*"},
		ExposedHeaders: []string{"Link", "X-Next-Cursor", "X-Last-Seq", "ETag", "X-Request-Id", "RateLimit", "RateLimit-Policy", "Retry-After"},
		MaxAge:         7200, // seconds; no browser keeps it longer
	})
}

// refusing is Info.Refusing for Options.CORSOnErrors: it adds the headers of CORS to the answer of an error. refusing
// returns true if r is a preflight, which CORS has then answered.
func (c *chain) refusing(w http.ResponseWriter, r *http.Request) (answered bool) {
	c.corsOnErrors.HandlerFunc(w, r)
	return isPreflight(r)
}

// isPreflight reports whether r is a preflight request, which the CORS handler answers by itself.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

func spanName(_ string, r *http.Request) string {
	if r.Pattern == "" {
		return knownMethod(r.Method)
	}
	return knownMethod(r.Method) + " " + r.Pattern
}

// fromStranger reports whether r comes neither from the edge nor from a proxy in the CIDRs of TRUSTED_PROXIES. On the
// public listener, such a request starts a new trace, so that a client cannot have its requests sampled. The new trace
// links to the caller's trace.
func (c *chain) fromStranger(r *http.Request) bool {
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	return !c.origin.believes(r, x.fromEdge)
}

type exchangeKey struct{}

// ServeHTTP makes the exchange of one request and passes the request through the layers of the chain.
func (c *chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{ResponseWriter: w, control: http.NewResponseController(w), chain: c, start: time.Now()}
	x.info.RequestID = requestID(r.Header)
	x.log = requestLog{Handler: c.telemetry.Logger.Handler(), id: x.info.RequestID}
	x.info.Logger = slog.New(&x.log)
	if c.corsOnErrors != nil {
		x.info.Refusing = c.refusing
	}
	x.info.BaseURL, x.info.RequestURL, x.info.Admit, x.info.Leave, x.info.Hold = x.baseURL, x.requestURL, x.admit, x.leave, x.hold
	var refused error
	x.fromEdge, refused = c.origin.takeEdgeKey(r)
	x.info.ClientAddress, x.info.ClientKnown = c.origin.client(r, x.fromEdge)
	w.Header()["X-Request-Id"] = []string{x.info.RequestID}

	c.metrics.inFlight.Add(1)
	ctx := httpapi.WithInfo(r.Context(), &x.info)
	if c.traced != nil {
		ctx = context.WithValue(ctx, exchangeKey{}, x)
	} else if r.Header["Traceparent"] != nil {
		// This service records no spans, but its log names the caller's trace.
		ctx = c.telemetry.Propagator.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	x.ctx = ctx
	r = r.WithContext(ctx)
	x.request = r
	defer x.end()

	if r.Body != nil && r.Body != http.NoBody {
		x.body = &patientBody{ReadCloser: r.Body, control: x.control, stall: c.config.ReadTimeout}
		r.Body = x.body
		_ = x.control.EnableFullDuplex() // otherwise net/http reads the body before it sends the answer
	}
	r, x.handler = c.router.Match(r)
	x.request = r
	if refused != nil {
		x.handler = x.tooMany(refused, "requests are refused: too many have a Lectern-Edge-Key that is not one of EDGE_KEYS")
	} else if err := x.enter(); err != nil {
		x.handler = x.tooMany(err, "requests are refused: too many at once")
	}
	if c.traced != nil && !c.quiet(x.info.Route) {
		c.traced.ServeHTTP(x, r)
	} else {
		x.answer(x, r)
	}
	x.finish()
}

// tooMany returns a handler that answers a refused request with err and does not read the body. Refusals must cost
// little, so the log has about one warning a second, with the text why. The access line of a refused request has the
// level debug.
func (x *exchange) tooMany(err error, why string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		now := x.start.Unix()
		if last := x.chain.refusalLogged.Load(); last != now && x.chain.refusalLogged.CompareAndSwap(last, now) {
			x.info.Logger.LogAttrs(x.ctx, slog.LevelWarn, why)
		}
		x.info.Logger = slog.New(slog.DiscardHandler)
		x.info.Recorded = true
		x.chain.refuse(w, r, err)
	}
}

// serveTraced answers a request inside the span that otelhttp has started, and adds the request's id to the span.
func (c *chain) serveTraced(w http.ResponseWriter, r *http.Request) {
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	x.ctx = r.Context()
	trace.SpanFromContext(x.ctx).SetAttributes(attribute.String("lectern.request_id", x.info.RequestID))
	x.answer(w, r)
}

// answer runs the request's handler, with CORS and compression if the listener has them and the request allows them.
// With CORS, a preflight is answered without the handler.
func (x *exchange) answer(w http.ResponseWriter, r *http.Request) {
	c := x.chain
	if c.cors != nil {
		c.cors.HandlerFunc(w, r)
		if isPreflight(r) {
			return
		}
	}
	if c.compress != nil {
		x.coding = coding(r.Header)
		if x.coding != "" && r.Method != http.MethodHead {
			c.compress(guarded{x})(w, r)
			return
		}
	}
	guarded{x}.ServeHTTP(w, r)
}

// guarded runs the handler of a request, and severs the answer if the handler panics. The compression around the
// handler then cannot write its trailer, which would make half a list look complete.
type guarded struct{ x *exchange }

// ServeHTTP sets the headers that the answers of the listener share, and runs the handler. If the handler panics,
// ServeHTTP severs the answer and lets the panic continue.
func (g guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := g.x
	h := w.Header()
	if plain := x.chain.plain; plain != nil {
		maps.Copy(h, plain)
	} else {
		h["X-Content-Type-Options"] = x.chain.headers.noSniff
		h["Content-Security-Policy"] = x.chain.headers.policy
		h["Cache-Control"] = x.chain.headers.cache
		if x.chain.headers.vary != nil {
			h["Vary"] = x.chain.headers.vary
		}
		maps.Copy(h, x.chain.added)
	}
	finished := false
	defer func() {
		if !finished {
			x.severed = true
			trace.SpanFromContext(r.Context()).SetStatus(codes.Error, "the answer was cut short")
		}
	}()
	x.handler.ServeHTTP(w, r)
	finished = true
}

// end recovers from a panic of the handler, gives back what the request has taken, and logs and counts the request. If
// the answer was broken off, end panics with http.ErrAbortHandler.
func (x *exchange) end() {
	// Last, even after abort: a shutdown closes the connections once no request is in flight. It would close a connection
	// that must be reset as if its answer were complete.
	defer x.chain.metrics.inFlight.Add(-1)
	defer x.depart()
	if fault := recover(); fault != nil {
		x.recovered(fault)
	}
	if x.body != nil {
		_ = x.body.Close() // it has no error
	}
	elapsed := time.Since(x.start)
	x.chain.metrics.record(x, elapsed)
	x.accessLine(elapsed)
	if x.aborted {
		x.abort()
	}
}

// recovered handles a panic of the handler with the value fault. For http.ErrAbortHandler, the connection ends. Any
// other panic is logged, and answered with 500 if no part of the answer has begun; otherwise the connection ends.
func (x *exchange) recovered(fault any) {
	if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		x.aborted = true
		return
	}
	err := fmt.Errorf("panic: %v", fault)
	x.info.Err = err
	x.info.Logger.LogAttrs(x.ctx, slog.LevelError, "handler panicked",
		slog.String("route", x.info.Route), slog.Any("error", err), slog.String("stack", string(debug.Stack())))
	if x.status != 0 {
		x.aborted = true
		return
	}
	defer func() {
		if recover() != nil { // httpapi knows that a body has begun, in the buffer of the compression
			x.aborted = true
		}
	}()
	x.severed = false
	x.Header().Del("Content-Encoding")
	httpapi.WriteError(x, x.request, err)
	x.finish()
}

// accessLine logs one line about the request, unless its route is quiet. The line has the route, the project and the
// client. The whole path and the query are left out, because these may hold secrets and personal data.
func (x *exchange) accessLine(elapsed time.Duration) {
	if x.chain.quiet(x.info.Route) {
		return
	}
	level := slog.LevelInfo
	if x.info.Recorded {
		level = slog.LevelDebug
	}
	out := x.log.Handler
	if !out.Enabled(x.ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs,
		slog.String("request_id", x.info.RequestID),
		slog.String("method", knownMethod(x.request.Method)),
		slog.String("route", x.info.Route),
		slog.Int("status", x.status),
		slog.Int64("bytes", x.bytes),
		slog.Int64("duration_us", elapsed.Microseconds()),
		slog.String("client", x.info.ClientAddress))
	if x.info.ProjectID != "" {
		// The segment of an invalid path may be as long as a request line.
		attrs = append(attrs, slog.String("project", x.info.ProjectID[:min(len(x.info.ProjectID), wire.MaxIdentifierBytes)]))
	}
	if x.info.KeyID != "" {
		attrs = append(attrs, slog.String("key_id", x.info.KeyID))
	}
	if x.info.Err != nil {
		attrs = append(attrs, slog.String("code", x.failure()))
	}
	if why := x.refusal(); why != "" {
		attrs = append(attrs, slog.String("reason", string(why)))
	}
	if x.aborted {
		attrs = append(attrs, slog.Bool("aborted", true))
	}
	// The record goes straight to the handler. A Logger would first look up the caller's source line.
	line := slog.NewRecord(x.start.Add(elapsed), level, "request", 0)
	line.AddAttrs(attrs...)
	_ = out.Handle(x.ctx, line) // a log cannot report its own failure
}

// failure returns the code of the request's error, or "canceled" if the answer was broken off by a canceled request or
// a failed write.
func (x *exchange) failure() string {
	if x.aborted && (errors.Is(x.info.Err, context.Canceled) || errors.Is(x.info.Err, httpapi.ErrNotTaken)) {
		return "canceled"
	}
	return string(apierr.From(x.info.Err).Code())
}

// refusal returns the reason why the request's key or token was refused, and "" if neither was.
func (x *exchange) refusal() apierr.Refusal {
	if x.info.Err == nil {
		return ""
	}
	return apierr.From(x.info.Err).Refusal()
}
