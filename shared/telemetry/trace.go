package telemetry

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lectern-dev/lectern/shared/config"
)

// spanExporter returns the exporter that receives the spans, or nil if tracing is off.
func spanExporter(ctx context.Context, o Options) (sdktrace.SpanExporter, error) {
	switch {
	case o.SpanExporter != nil:
		return o.SpanExporter, nil
	case !o.Config.tracing():
		return nil, nil
	case o.Config.TracesExporter == "console":
		return stdouttrace.New()
	}
	// OpenTelemetry's own choice by these variables, autoexport, also links the exporters of metrics and of logs.
	switch protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv(otlpProtocol)); protocol {
	case "", "http/protobuf":
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	default:
		return nil, config.Invalid(otlpProtocol, protocol, "http/protobuf, grpc")
	}
}

const otlpProtocol = "OTEL_EXPORTER_OTLP_PROTOCOL"

// reportEvery is the least time between two lines of the log about spans that could not be exported.
const reportEvery = time.Minute

// reportingExporter logs the errors of the embedded exporter. The SDK would pass each error to OpenTelemetry's global
// error handler, which writes plain text to standard error, not to the log.
type reportingExporter struct {
	sdktrace.SpanExporter
	log *slog.Logger

	mu       sync.Mutex
	reported time.Time
	lost     int // spans since the last report
}

// ExportSpans exports the spans. A failure is logged, at most once in reportEvery, and not returned.
func (e *reportingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost += len(spans)
	if now := time.Now(); now.Sub(e.reported) >= reportEvery {
		e.log.LogAttrs(ctx, slog.LevelWarn, "spans could not be exported",
			slog.Int("lost", e.lost), slog.Any("error", err))
		e.reported, e.lost = now, 0
	}
	return nil
}
