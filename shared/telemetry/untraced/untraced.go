// Package untraced keeps repeated work out of the traces, such as health checks every few seconds. The traces of such
// work would hide the traces of requests.
package untraced

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// Context returns a context in which no spans are recorded, because its parent span is not sampled. The default
// samplers follow the parent. OTEL_TRACES_SAMPLER may name a sampler that does not follow the parent.
func Context(ctx context.Context) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
}
