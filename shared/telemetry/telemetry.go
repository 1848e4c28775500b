// Package telemetry owns a service's log, traces and metrics. The package starts and stops all three. The package sets
// none of OpenTelemetry's globals, because several services may run in one process.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Options configures the [Telemetry] of a service: its name, version, settings and outputs.
type Options struct {
	// Service is the service's name: the log's "service", the resource's service.name. Required.
	Service string
	// Version is the service's version. Empty: the version in the binary's build information.
	Version string
	// Config holds the settings.
	Config Config
	// LogOutput receives the log. Nil: the process's standard error.
	LogOutput io.Writer
	// SpanExporter receives the spans instead of the exporter in Config, and turns tracing on. Usually nil.
	SpanExporter sdktrace.SpanExporter
}

// Telemetry is a service's log, traces and metrics. All fields are set.
type Telemetry struct {
	// Logger is the log. Lines below warn may wait up to [LogDelay] before they are written. Shutdown writes the
	// waiting lines. A context with a span adds trace_id and span_id.
	Logger *slog.Logger
	// TracerProvider records spans, or does nothing if tracing is off.
	TracerProvider trace.TracerProvider
	// MeterProvider creates the instruments that MetricsHandler shows.
	MeterProvider metric.MeterProvider
	// Propagator reads and writes the W3C Trace Context headers.
	Propagator propagation.TextMapPropagator

	tracing  bool
	log      *lineBuffer
	registry *prometheus.Registry
	stop     []func(context.Context) error
}

// Start starts the telemetry of a service. Start opens no connection: an endpoint that is out of reach costs traces and
// a line in the log, and never the service. The caller calls Shutdown at the end.
func Start(ctx context.Context, o Options) (*Telemetry, error) {
	if o.LogOutput == nil {
		o.LogOutput = os.Stderr
	}
	build := buildOf(o.Version)
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(),
		resource.WithAttributes(attribute.String("service.name", o.Service), attribute.String("service.version", build.version)))
	if err != nil {
		return nil, fmt.Errorf("telemetry: resource: %w", err)
	}
	t := &Telemetry{Propagator: propagation.TraceContext{}, log: newLineBuffer(o.LogOutput)}
	t.Logger = newLogger(t.log, o.Config).With(slog.String("service", o.Service))
	if err := t.startTraces(ctx, o, res); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	if err := t.startMetrics(res, build); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	return t, nil
}

func (t *Telemetry) startTraces(ctx context.Context, o Options, res *resource.Resource) error {
	t.TracerProvider = noop.NewTracerProvider()
	exporter, err := spanExporter(ctx, o)
	if err != nil {
		return fmt.Errorf("telemetry: span exporter: %w", err)
	}
	if exporter == nil {
		return nil
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(res),
		sdktrace.WithBatcher(&reportingExporter{SpanExporter: discreetExporter{exporter}, log: t.Logger}))
	t.TracerProvider = provider
	t.tracing = true
	t.stop = append(t.stop, provider.Shutdown)
	return nil
}

func (t *Telemetry) startMetrics(res *resource.Resource, b build) error {
	registry := prometheus.NewRegistry()
	provider, err := newMeterProvider(registry, res)
	if err != nil {
		return fmt.Errorf("telemetry: metrics: %w", err)
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "lectern_build_info",
		Help:        "The running build: always 1, with the build in the labels.",
		ConstLabels: prometheus.Labels{"version": b.version, "revision": b.revision, "goversion": runtime.Version()},
	})
	info.Set(1)
	registry.MustRegister(info)
	t.registry = registry
	t.MeterProvider = provider
	t.stop = append(t.stop, provider.Shutdown)
	return nil
}

// Tracing reports whether spans are exported. If not, a caller can leave instrumentation out.
func (t *Telemetry) Tracing() bool { return t.tracing }

// MetricsHandler returns a handler that serves the metrics in Prometheus' text formats, with the metrics of others. No
// two metrics may have the same name. The handler serves four requests at once, and refuses further ones.
func (t *Telemetry) MetricsHandler(others ...prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(append(prometheus.Gatherers{t.registry}, others...), promhttp.HandlerOpts{
		EnableOpenMetrics:   true,
		MaxRequestsInFlight: 4,
	})
}

// Shutdown sends the waiting spans, stops the metrics and writes the log's last lines. ctx bounds the sending. Later
// lines of the log are written at once.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var errs []error
	for _, stop := range t.stop {
		errs = append(errs, stop(ctx))
	}
	t.stop = nil
	return errors.Join(append(errs, t.log.close())...)
}

// Build returns the version of the running program, a space, and the revision of its source. The revision is empty if
// the toolchain did not record it.
func Build() string {
	b := buildOf("")
	return b.version + " " + b.revision
}

// build holds the version of the program, and the revision of its source from the binary's build information.
type build struct{ version, revision string }

func buildOf(version string) build {
	b := build{version: version}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.revision = s.Value
			}
		}
		if b.version == "" {
			b.version = info.Main.Version
		}
	}
	if b.version == "" {
		b.version = "(devel)"
	}
	return b
}
