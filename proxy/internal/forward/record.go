package forward

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lectern-dev/lectern/proxy/internal/target"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// The decisions about a request that is not refused. A refusal has its error code as the decision.
const (
	decisionAllowed   apierr.Code = "allowed"
	decisionPreflight apierr.Code = "preflight"
)

// record holds the data of a request for the audit log and the metrics: the caller, the decision and the outcome. The
// audit log and the metrics never show the value of a credential, or the path or query of a URL.
type record struct {
	began    time.Time
	incoming incoming
	verdict  policy.Verdict
	decision apierr.Code // empty: allowed
	why      string      // the reason of a refusal, for the authors of the manifests
	status   int         // 0: no answer began
	bytesIn  atomic.Int64
	bytesOut int64
	scrubbed int
	complete bool // the caller got the whole answer
}

// endpoint returns the name of the endpoint that allows the request, or that comes closest. endpoint returns "" if no
// endpoint allows the origin, or if the request lacks a key that the endpoint requires.
func (rec *record) endpoint() string {
	if rec.verdict.Endpoint == nil || rec.verdict.Fault <= policy.NoKey {
		return ""
	}
	return rec.verdict.Endpoint.Name
}

// credentials returns the ids of the credentials that the policy allows the request to use, and nil if the policy
// refuses the request.
func (rec *record) credentials() []string {
	var ids []string
	for _, c := range rec.verdict.Credentials {
		ids = append(ids, c.ID)
	}
	return ids
}

// destination returns host:port of the target, "" if the proxy could not parse the target.
func (rec *record) destination() string {
	if rec.incoming.target == nil {
		return ""
	}
	return rec.incoming.target.Address()
}

// finish logs and counts a request. ServeHTTP calls finish once for each request, even if the answer is aborted.
func (h *Handler) finish(r *http.Request, rec *record) {
	if rec.decision == "" {
		rec.decision = decisionAllowed
	}
	elapsed := h.o.Now().Sub(rec.began)
	h.metrics.add(rec, elapsed)
	rec.audit(r.Context(), elapsed)
}

// audit writes the audit record of a request that took the given time. If the log is off at the level Info, audit does
// nothing.
func (rec *record) audit(ctx context.Context, elapsed time.Duration) {
	info := httpapi.InfoFrom(ctx)
	// A Logger would look up its caller for every request, so the record goes straight to the handler.
	out := info.Logger.Handler()
	if !out.Enabled(ctx, slog.LevelInfo) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	for _, a := range [...]struct{ name, value string }{
		{"project", rec.incoming.project}, {"environment", rec.incoming.environment}, {"endpoint", rec.endpoint()},
		{"origin", rec.incoming.origin}, {"destination", rec.destination()},
		{"reason", rec.why}, {"key_id", info.KeyID}, {"client", info.ClientAddress},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.name, a.value))
		}
	}
	if ids := rec.credentials(); len(ids) > 0 {
		attrs = append(attrs, slog.Any("credentials", ids))
	}
	attrs = append(attrs,
		slog.String("decision", string(rec.decision)),
		slog.Int("status", rec.status),
		slog.Int64("bytes_in", rec.bytesIn.Load()),
		slog.Int64("bytes_out", rec.bytesOut),
		slog.Int64("duration_us", elapsed.Microseconds()))
	if rec.scrubbed > 0 {
		attrs = append(attrs, slog.Int("scrubbed", rec.scrubbed))
	}
	if !rec.complete {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	line := slog.NewRecord(rec.began.Add(elapsed), slog.LevelInfo, "audit", 0)
	line.AddAttrs(attrs...)
	_ = out.Handle(ctx, line) // there is nowhere to report a failure of the log
	info.Recorded = true
}

// metrics holds the proxy's metrics about requests. No attribute contains the name of a project or of a host.
type metrics struct {
	duration metric.Float64Histogram
	scrubbed metric.Int64Counter
	inFlight atomic.Int64
	kinds    sync.Map // from outcome to []metric.RecordOption, made once
}

// outcome holds the attributes of a request's metrics. Each attribute has few possible values, so the number of time
// series stays small.
type outcome struct {
	decision apierr.Code
	class    string // of the status: 2xx
}

func (o outcome) options() []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(
		attribute.String("decision", string(o.decision)), attribute.String("status_class", o.class)))}
}

func newMetrics(provider metric.MeterProvider) (*metrics, error) {
	meter := provider.Meter("github.com/lectern-dev/lectern/proxy")
	m := &metrics{}
	var errs [4]error
	m.duration, errs[0] = meter.Float64Histogram("lectern.proxy.request.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of proxied requests, by decision and class of status, to the end of the body."))
	m.scrubbed, errs[1] = meter.Int64Counter("lectern.proxy.scrubbed", metric.WithUnit("{occurrence}"),
		metric.WithDescription("Credentials that the proxy removed from answers."))
	active, err := meter.Int64ObservableUpDownCounter("lectern.proxy.active_requests", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that are being proxied."))
	errs[2] = err
	if err == nil {
		_, errs[3] = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
			o.ObserveInt64(active, m.inFlight.Load())
			return nil
		}, active)
	}
	return m, errors.Join(errs[:]...)
}

// add takes a request that took the time elapsed out of the requests in flight. add counts the request, and the
// credentials that were removed from its answer.
func (m *metrics) add(rec *record, elapsed time.Duration) {
	m.inFlight.Add(-1)
	class := "none"
	if rec.status >= 100 && rec.status < 600 {
		class = [...]string{"1xx", "2xx", "3xx", "4xx", "5xx"}[rec.status/100-1]
	}
	o := outcome{rec.decision, class}
	options, ok := m.kinds.Load(o)
	if !ok {
		options, _ = m.kinds.LoadOrStore(o, o.options())
	}
	ctx := context.Background()
	m.duration.Record(ctx, elapsed.Seconds(), options.([]metric.RecordOption)...)
	if rec.scrubbed > 0 {
		m.scrubbed.Add(ctx, int64(rec.scrubbed))
	}
}

// span is the trace span of a call to a target. The request to the target carries no trace context.
type span struct{ trace.Span }

func (h *Handler) startSpan(ctx context.Context, to *target.Target, rec *record) (context.Context, *span) {
	ctx, s := h.tracer.Start(ctx, "proxy target", trace.WithSpanKind(trace.SpanKindClient))
	if s.IsRecording() {
		s.SetAttributes(
			attribute.String("server.address", to.Host), attribute.Int("server.port", int(to.Port)),
			attribute.String("lectern.proxy.endpoint", rec.endpoint()), attribute.StringSlice("lectern.proxy.credentials", rec.credentials()))
	}
	return ctx, &span{s}
}

// answered writes the status of the target's answer to the span.
func (s *span) answered(res *http.Response) {
	if s.IsRecording() {
		s.SetAttributes(attribute.Int("http.response.status_code", res.StatusCode))
	}
}

// end ends the span. A request whose caller got no answer of the target gets an error status.
func (s *span) end(rec *record) {
	if rec.status == 0 {
		s.SetStatus(codes.Error, "no answer")
	}
	s.Span.End()
}
