package forward

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
)

// What is decided about a request that is not refused.
const (
	decisionAllowed   apierr.Code = "allowed"
	decisionPreflight apierr.Code = "preflight"
)

// record is what is kept of a request: who asked for what, what was decided, and what came of it. It has no
// place for a value, a path or a query.
type record struct {
	began                time.Time
	project, environment string
	endpoint             string
	origin               string
	destination          string // host:port
	credentials          []string
	decision             apierr.Code // empty: allowed
	why                  string      // for those who write the manifests
	status               int
	bytesIn              atomic.Int64
	bytesOut             int64
	scrubbed             int
}

// finish writes the record of a request: once, however it ends.
func (x *exchange) finish() {
	rec := &x.record
	if rec.decision == "" {
		rec.decision = decisionAllowed
	}
	elapsed := x.h.o.Now().Sub(rec.began)
	x.h.metrics.note(rec, elapsed)
	attrs := make([]slog.Attr, 0, 18)
	for _, a := range []struct{ name, value string }{
		{"project", rec.project}, {"environment", rec.environment}, {"endpoint", rec.endpoint},
		{"origin", rec.origin}, {"destination", rec.destination},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.name, a.value))
		}
	}
	if len(rec.credentials) > 0 {
		attrs = append(attrs, slog.Any("credentials", slices.Clone(rec.credentials)))
	}
	attrs = append(attrs,
		slog.String("decision", string(rec.decision)),
		slog.Int("status", rec.status),
		slog.Int64("bytes_in", rec.bytesIn.Load()),
		slog.Int64("bytes_out", rec.bytesOut),
		slog.Int64("duration_us", elapsed.Microseconds()))
	if rec.why != "" {
		attrs = append(attrs, slog.String("reason", rec.why))
	}
	if rec.scrubbed > 0 {
		attrs = append(attrs, slog.Int("scrubbed", rec.scrubbed))
	}
	info := httpapi.InfoFrom(x.r.Context())
	if info.KeyID != "" {
		attrs = append(attrs, slog.String("key_id", info.KeyID))
	}
	if !x.complete {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	if info.ClientAddress != "" {
		attrs = append(attrs, slog.String("client", info.ClientAddress))
	}
	// Straight to the handler: a Logger would first look up where it was called from, for every request.
	out := info.Logger.Handler()
	if !out.Enabled(x.r.Context(), slog.LevelInfo) {
		return
	}
	line := slog.NewRecord(rec.began.Add(elapsed), slog.LevelInfo, "audit", 0)
	line.AddAttrs(attrs...)
	_ = out.Handle(x.r.Context(), line) // the log can not report that it fails
	info.Recorded = true
}

// metrics counts requests. No name of a project or of a host is among the attributes.
type metrics struct {
	duration metric.Float64Histogram
	scrubbed metric.Int64Counter
	inFlight atomic.Int64
	kinds    sync.Map // of outcome to []metric.RecordOption, made once
}

// outcome is what requests are counted by. Both come from small sets.
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
		metric.WithDescription("Credentials that came back in answers and were taken out."))
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

func (m *metrics) note(rec *record, elapsed time.Duration) {
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

// span is the trace's part of a call to a target. What is sent to the target carries nothing of it.
type span struct{ trace.Span }

func (h *Handler) startSpan(ctx context.Context, x *exchange) (context.Context, *span) {
	ctx, s := h.tracer.Start(ctx, "proxy target", trace.WithSpanKind(trace.SpanKindClient))
	if s.IsRecording() {
		s.SetAttributes(
			attribute.String("server.address", x.target.Host), attribute.Int("server.port", int(x.target.Port)),
			attribute.String("lectern.proxy.endpoint", x.record.endpoint), attribute.StringSlice("lectern.proxy.credentials", x.record.credentials))
	}
	return ctx, &span{s}
}

// answered notes the answer's status.
func (s *span) answered(res *http.Response) {
	if s.IsRecording() {
		s.SetAttributes(attribute.Int("http.response.status_code", res.StatusCode))
	}
}

// end ends the span.
func (s *span) end(x *exchange) {
	if x.record.status == 0 || x.record.decision != "" {
		s.SetStatus(codes.Error, "no answer")
	}
	s.Span.End()
}
