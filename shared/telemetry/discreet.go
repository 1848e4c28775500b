package telemetry

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// discreetExporter removes the attributes that instrumentations record about a request's URL. A client may have put a
// key into a URL by mistake, and a proxied URL belongs to the caller. The route's template is enough. discreetExporter
// also removes client addresses, which the instrumentations take from forwarding headers of any client.
type discreetExporter struct{ sdktrace.SpanExporter }

// indiscreet reports whether an attribute shows a request's URL or a client's address, and must be removed. The names
// are OpenTelemetry's (semantic conventions, attributes of HTTP).
func indiscreet(a attribute.KeyValue) bool {
	switch a.Key {
	case "url.path", "url.query", "url.full", "http.url", "http.target", "client.address":
		return true
	}
	return false
}

// ExportSpans exports the spans without the attributes that are indiscreet.
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

// discreetSpan is a span that shows the given attributes in the place of its own attributes.
type discreetSpan struct {
	sdktrace.ReadOnlySpan
	attributes []attribute.KeyValue
}

// Attributes returns the attributes of the span that are not indiscreet.
func (s discreetSpan) Attributes() []attribute.KeyValue { return s.attributes }
