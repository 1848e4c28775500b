package telemetry

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// discreetExporter drops what the instrumentations note of a request's URL: a client may have put a key
// there by mistake, and a proxied URL holds what is no business of ours. The route's template is
// enough. It drops, too, what they believe of a forwarded header from anybody.
type discreetExporter struct{ sdktrace.SpanExporter }

// indiscreet are OpenTelemetry's names (semantic conventions, attributes of HTTP).
func indiscreet(a attribute.KeyValue) bool {
	switch a.Key {
	case "url.path", "url.query", "url.full", "http.url", "http.target", "client.address":
		return true
	}
	return false
}

// ExportSpans exports the spans without those attributes.
func (e discreetExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	kept := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		kept[i] = s
		if attributes := s.Attributes(); slices.ContainsFunc(attributes, indiscreet) {
			kept[i] = discreetSpan{s, slices.DeleteFunc(slices.Clone(attributes), indiscreet)}
		}
	}
	return e.SpanExporter.ExportSpans(ctx, kept)
}

// discreetSpan is a span with other attributes.
type discreetSpan struct {
	sdktrace.ReadOnlySpan
	attributes []attribute.KeyValue
}

// Attributes returns those that are left.
func (s discreetSpan) Attributes() []attribute.KeyValue { return s.attributes }
