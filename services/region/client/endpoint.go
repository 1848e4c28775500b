package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// maxAnswer is how many bytes of an answer the client reads. A longer answer cannot be decoded.
const maxAnswer = 64 << 10

// endpoint makes requests to one URL of the region service and the paths below it, with one key.
type endpoint struct {
	url       string
	key       string
	http      *http.Client
	transport *http.Transport // nil if the caller brought its HTTP client
	tracer    trace.Tracer
}

// newEndpoint returns the endpoint at path below baseURL. If custom is nil, the endpoint has an HTTP client of its own,
// which follows no redirects. If tracer is nil, the endpoint records no spans. The error means that baseURL is no
// address of HTTP, or that key is empty.
func newEndpoint(baseURL, path, key string, custom *http.Client, tracer trace.TracerProvider) (*endpoint, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("region client: the address is not like http://lectern-region.lectern")
	}
	if key == "" {
		return nil, errors.New("region client: no key given")
	}
	if tracer == nil {
		tracer = noop.NewTracerProvider()
	}
	e := &endpoint{
		url: strings.TrimSuffix(u.String(), "/") + path, key: key, http: custom,
		tracer: tracer.Tracer("github.com/lectern-dev/lectern/services/region/client"),
	}
	if e.http == nil {
		e.transport = &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second}
		e.http = &http.Client{Transport: e.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return e, nil
}

func (e *endpoint) close() {
	if e.transport != nil {
		e.transport.CloseIdleConnections()
	}
}

// request is one request that an endpoint makes. A nil body sends no Content-Type.
type request struct {
	span        string // the name of its span
	method      string
	path        string // appended to the URL of the endpoint
	contentType string
	body        []byte
}

// do makes one request and passes the body to decode if the status is 200. If there is no whole answer, the error is
// [context.Canceled] if the caller cancelled ctx, and otherwise [ErrUnavailable]. An [*Error] has the answer of the
// service, or the text of the error of decode.
func (e *endpoint) do(ctx context.Context, r request, decode func(body []byte) error) (err error) {
	ctx, span := e.tracer.Start(ctx, r.span, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("http.request.method", r.method)))
	defer func() {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}()
	sent, err := http.NewRequestWithContext(ctx, r.method, e.url+r.path, bytes.NewReader(r.body))
	if err != nil {
		return fmt.Errorf("region client: %w", err)
	}
	if r.body != nil {
		sent.Header.Set("Content-Type", r.contentType)
	}
	sent.Header.Set("X-Api-Key", e.key)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(sent.Header))
	resp, err := e.http.Do(sent)
	if err != nil {
		return broken(ctx, err)
	}
	defer resp.Body.Close()
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return broken(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return refusal(resp, body)
	}
	if err := decode(body); err != nil {
		return &Error{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), Message: err.Error()}
	}
	return nil
}

// broken returns the error of a request without a whole answer. If the caller cancelled ctx, the error is that of ctx.
// Otherwise the error is [ErrUnavailable] with the cause err.
func broken(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
