package httpserver_test

import (
	"context"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// keepOnShutdown keeps the spans of an in-memory exporter, which drops them when it is shut down.
type keepOnShutdown struct {
	*tracetest.InMemoryExporter
	kept *tracetest.SpanStubs
}

// Shutdown copies the spans and shuts the exporter down.
func (k keepOnShutdown) Shutdown(ctx context.Context) error {
	*k.kept = k.GetSpans()
	return k.InMemoryExporter.Shutdown(ctx)
}
