// Package edge routes the requests of a local run to the services, as the ingress does in a cluster: one address, and
// for each path the service that the table of routes names. It buffers nothing and changes no path. It answers two
// things itself: 404 for an unknown path, and 503 while a service cannot be reached.
package edge

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	noopmetric "go.opentelemetry.io/otel/metric/noop"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/httpserver"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/telemetry"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Options configures an edge.
type Options struct {
	// Name is the name of the edge in traces.
	Name string
	// Routes are the known paths.
	Routes routes.Table
	// Addresses holds the address of each service, host:port. Without one, the service's paths are unknown.
	Addresses map[routes.Service]string
	// Telemetry receives the log and the spans.
	Telemetry *telemetry.Telemetry
}

type edge struct {
	Options
	log *slog.Logger
	// next forwards a request, inside a span if tracing is on.
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

// rewrite sends a request to its service, otherwise unchanged.
func rewrite(p *httputil.ProxyRequest) {
	address, _ := p.In.Context().Value(addressKey{}).(string)
	p.Out.URL.Scheme, p.Out.URL.Host = "http", address
	p.Out.URL.RawQuery = p.In.URL.RawQuery // ReverseProxy drops parameters that it cannot parse
	p.Out.Host = p.In.Host
	p.SetXForwarded()
}

// ServeHTTP forwards one request.
func (e *edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	info := &httpapi.Info{RequestID: httpserver.RequestID(r.Header), Logger: e.log, BaseURL: func() string { return "" }}
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
		x.streamBothWays(r) // and no header is added: the proxy would send it on
	} else {
		r.Header["X-Request-Id"] = []string{info.RequestID}
	}
	e.next.ServeHTTP(x, r)
	finished = true
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

// answer counts the answer to a request.
type answer struct {
	http.ResponseWriter
	status int
	bytes  int64
	upload *upload // nil unless the body may stream while the answer does
}

// streamBothWays lets the request's body stream while the answer does: a target of the proxy may answer before it has
// read all of the body. HTTP/2 always does so.
//
// In this mode net/http keeps a connection open after a malformed chunked body, and takes the rest of the body for a
// request. [answer.WriteHeader] prevents that.
func (a *answer) streamBothWays(r *http.Request) {
	if r.ContentLength == 0 || r.ProtoMajor != 1 {
		return
	}
	_ = http.NewResponseController(a.ResponseWriter).EnableFullDuplex() // HTTP/1 always can
	a.upload = &upload{ReadCloser: r.Body}
	r.Body = a.upload
}

// upload is a request's body that may be read while the answer is written.
type upload struct {
	io.ReadCloser
	complete atomic.Bool // read to its end, without a fault
}

// Read reads from the client.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		u.complete.Store(true)
	}
	return n, err
}

// Unwrap lets http.ResponseController through.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader notes the final status. If the body has not been read to its end by now, the connection ends after the
// answer.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK && a.status == 0 {
		a.status = status
		if a.upload != nil && !a.upload.complete.Load() {
			a.Header().Set("Connection", "close")
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write counts.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// complaints receives ReverseProxy's messages about broken streams, which a client or a shutdown ended.
type complaints struct{ log *slog.Logger }

// Write logs one message.
func (c complaints) Write(line []byte) (int, error) {
	c.log.LogAttrs(context.Background(), slog.LevelDebug, "proxy", slog.String("says", strings.TrimSpace(string(line))))
	return len(line), nil
}
