// Package edge stands before the services of a local run as the ingress does in a cluster: one address,
// each path handed to the service that the table of routes names. It streams both ways, buffers
// nothing, changes no path, and answers itself only what no service can: 404 for a path that nobody
// has, 503 while a service is out of reach.
package edge

import (
	"context"
	"crypto/rand"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	noopmetric "go.opentelemetry.io/otel/metric/noop"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/telemetry"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Options is what an edge is made of.
type Options struct {
	// Name is the edge's, in traces.
	Name string
	// Routes are the paths that it hands on.
	Routes routes.Table
	// Addresses says where each service listens, host:port. A route whose service has none is not there.
	Addresses map[routes.Service]string
	// Telemetry takes the log and the spans.
	Telemetry *telemetry.Telemetry
}

type edge struct {
	Options
	log *slog.Logger
	// next hands a request on; behind a span when tracing is on.
	next http.Handler
}

// New returns the edge's handler.
func New(o Options) http.Handler {
	e := &edge{Options: o, log: o.Telemetry.Logger}
	var transport http.RoundTripper = &http.Transport{
		Proxy:               nil, // the services are on this machine, whatever the environment says
		DisableCompression:  true,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     90 * time.Second,
	}
	if o.Telemetry.Tracing() {
		transport = otelhttp.NewTransport(transport,
			otelhttp.WithTracerProvider(o.Telemetry.TracerProvider),
			otelhttp.WithMeterProvider(noopmetric.NewMeterProvider()),
			otelhttp.WithPropagators(o.Telemetry.Propagator))
	}
	e.next = &httputil.ReverseProxy{
		Rewrite:       rewrite,
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			httpapi.WriteError(w, r, apierr.NotAvailable(err))
		},
		ErrorLog: log.New(complaints{o.Telemetry.Logger}, "", 0),
	}
	if o.Telemetry.Tracing() {
		e.next = otelhttp.NewMiddleware("request",
			otelhttp.WithTracerProvider(o.Telemetry.TracerProvider),
			otelhttp.WithMeterProvider(noopmetric.NewMeterProvider()),
			otelhttp.WithPropagators(o.Telemetry.Propagator),
			otelhttp.WithServerName(o.Name),
			otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method + " " + r.Pattern }),
		)(e.next)
	}
	return e
}

type addressKey struct{}

// rewrite aims a request at its service, as it came.
func rewrite(p *httputil.ProxyRequest) {
	address, _ := p.In.Context().Value(addressKey{}).(string)
	p.Out.URL.Scheme, p.Out.URL.Host = "http", address
	p.Out.URL.RawQuery = p.In.URL.RawQuery // ReverseProxy drops parameters that it can not parse
	p.Out.Host = p.In.Host
	p.SetXForwarded()
}

// ServeHTTP hands one request on.
func (e *edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	info := &httpapi.Info{RequestID: requestID(r), Logger: e.log, BaseURL: func() string { return "" }}
	x := &answer{ResponseWriter: w}
	finished := false
	defer func() {
		e.accessLine(r, info, x, time.Since(start), !finished)
	}()
	ctx := httpapi.WithInfo(r.Context(), info)
	route, ok := e.Routes.Find(r.URL.EscapedPath())
	address := e.Addresses[route.Service]
	if !ok || address == "" {
		w.Header().Set("X-Request-Id", info.RequestID)
		httpapi.WriteError(x, r.WithContext(ctx), apierr.NoRoute())
		finished = true
		return
	}
	info.Route, info.ProjectID = route.Template, projectOf(route.Template, r.URL.EscapedPath())
	r = r.WithContext(context.WithValue(ctx, addressKey{}, address))
	r.Pattern = route.Template
	if route.Service == routes.Proxy {
		e.passThrough(w)
	} else {
		r.Header["X-Request-Id"] = []string{info.RequestID}
	}
	e.next.ServeHTTP(x, r)
	finished = true
}

// passThrough readies the way for a request whose target is somebody else's: bytes go both ways at once, as a
// target may answer before it was sent all, and no header is added, as it would be sent on.
func (e *edge) passThrough(w http.ResponseWriter) {
	// HTTP/2 can not otherwise, and says so.
	_ = http.NewResponseController(w).EnableFullDuplex()
}

// projectOf returns the project that an escaped path names.
func projectOf(template, path string) string {
	if !strings.HasPrefix(template, "/projects/{projectId}") {
		return ""
	}
	segment, _, _ := strings.Cut(strings.TrimPrefix(path, "/projects/"), "/")
	id, err := url.PathUnescape(segment)
	if err != nil || !wire.ValidIdentifier(id) {
		return ""
	}
	return id
}

// requestID returns the client's id when it may be logged, or a new one.
func requestID(r *http.Request) string {
	if ids := r.Header["X-Request-Id"]; len(ids) == 1 && len(ids[0]) > 0 && len(ids[0]) <= 128 {
		plain := strings.IndexFunc(ids[0], func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._:/+=@-", c)
		}) < 0
		if plain {
			return ids[0]
		}
	}
	return rand.Text()
}

// accessLine logs the request. It names the route and never the path, the query or a header.
func (e *edge) accessLine(r *http.Request, info *httpapi.Info, x *answer, took time.Duration, aborted bool) {
	attrs := []slog.Attr{
		slog.String("request_id", info.RequestID),
		slog.String("method", r.Method),
		slog.String("route", info.Route),
		slog.Int("status", x.status),
		slog.Int64("bytes", x.bytes),
		slog.Int64("duration_us", took.Microseconds()),
	}
	if aborted {
		attrs = append(attrs, slog.Bool("aborted", true))
	}
	e.log.LogAttrs(r.Context(), slog.LevelInfo, "request", attrs...)
}

// answer notes what was answered.
type answer struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// Unwrap lets http.ResponseController through.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader notes the final status.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK && a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write counts.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// complaints takes what ReverseProxy says of broken streams, which is what a client or a stop did.
type complaints struct{ log *slog.Logger }

// Write logs one complaint.
func (c complaints) Write(line []byte) (int, error) {
	c.log.LogAttrs(context.Background(), slog.LevelDebug, "proxy", slog.String("says", strings.TrimSpace(string(line))))
	return len(line), nil
}
