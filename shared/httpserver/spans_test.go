package httpserver_test

import (
	"context"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// keepOnShutdown keeps the spans that an in-memory exporter forgets when it is shut down.
type keepOnShutdown struct {
	*tracetest.InMemoryExporter
	kept *tracetest.SpanStubs
}

// Shutdown keeps the spans.
func (k keepOnShutdown) Shutdown(ctx context.Context) error {
	*k.kept = k.GetSpans()
	return k.InMemoryExporter.Shutdown(ctx)
}
