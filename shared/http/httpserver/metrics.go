package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics holds the instruments that count the requests of one listener. The names http.server.request.duration and
// http.server.active_requests are from OpenTelemetry's semantic conventions. http.server.response.size, lectern.auth.refusals, the
// attribute listener and the status "none" are our own.
type metrics struct {
	duration metric.Float64Histogram
	size     metric.Int64Counter
	refusals metric.Int64Counter
	inFlight atomic.Int64
	listener attribute.KeyValue
	known    sync.Map // of requestKind to *measure
}

// requestKind holds the attributes of a request's metrics. The number of their values is bounded, whatever clients
// send.
type requestKind struct {
	route, method string
	status        int
}

// measure holds the attributes of a requestKind in the forms that the instruments take. metrics keeps one measure for
// each kind.
type measure struct {
	record []metric.RecordOption
	add    []metric.AddOption
}

// newMetrics registers the instruments of one listener, whose name is "public" or "internal".
func newMetrics(provider metric.MeterProvider, listener string) (*metrics, error) {
	meter := provider.Meter("github.com/lectern-dev/lectern/shared/http/httpserver")
	m := &metrics{listener: attribute.String("listener", listener)}
	var errs [5]error
	m.duration, errs[0] = meter.Float64Histogram("http.server.request.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of HTTP server requests, to the end of the body."))
	m.size, errs[1] = meter.Int64Counter("http.server.response.size", metric.WithUnit("By"),
		metric.WithDescription("Bytes of response bodies as sent, compressed where they were."))
	m.refusals, errs[2] = meter.Int64Counter("lectern.auth.refusals", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that got 401, by the reason why their key or token was refused."))
	active, err := meter.Int64ObservableUpDownCounter("http.server.active_requests", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that are being answered."))
	errs[3] = err
	if err == nil {
		set := metric.WithAttributes(m.listener)
		_, errs[4] = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
			o.ObserveInt64(active, m.inFlight.Load(), set)
			return nil
		}, active)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("httpserver: metrics: %w", err)
	}
	return m, nil
}

// record adds one request that has ended to the metrics: its duration elapsed, the bytes of its answer, and the reason of
// a 401.
func (m *metrics) record(x *exchange, elapsed time.Duration) {
	kind := requestKind{route: x.info.Route, method: knownMethod(x.request.Method), status: x.status}
	known, ok := m.known.Load(kind)
	if !ok {
		set := metric.WithAttributeSet(kind.attributes(m.listener))
		known, _ = m.known.LoadOrStore(kind, &measure{
			record: []metric.RecordOption{set},
			add:    []metric.AddOption{set},
		})
	}
	ms := known.(*measure)
	// Not the request's context: the instruments need nothing of it, and a canceled request counts too.
	ctx := context.Background()
	m.duration.Record(ctx, elapsed.Seconds(), ms.record...)
	m.size.Add(ctx, x.bytes, ms.add...)
	if why := x.refusal(); why != "" {
		m.refusals.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", string(why))))
	}
}

func (k requestKind) attributes(listener attribute.KeyValue) attribute.Set {
	status := "none" // the connection ended before an answer
	if k.status != 0 {
		status = strconv.Itoa(k.status)
	}
	return attribute.NewSet(
		listener,
		attribute.String("http.request.method", k.method),
		attribute.String("http.route", k.route),
		attribute.String("http.response.status_code", status),
	)
}

// knownMethod returns method, or "_OTHER" for a method outside RFC 9110 and RFC 5789. Clients can send any word, and
// each would be a further value in the metrics.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return method
	}
	return "_OTHER"
}
