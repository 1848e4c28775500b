// Package untraced keeps work out of the traces that repeats every few seconds, such as health checks. It would hide
// the traces of requests.
package untraced

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// Context returns a context in which no spans are recorded. Its span context is not sampled. Samplers that follow the
// parent, which are the default, keep it so; OTEL_TRACES_SAMPLER may name others.
func Context(ctx context.Context) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
}
