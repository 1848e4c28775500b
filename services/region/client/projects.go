// Package client is the client by which the operator manages the projects of the region service. Services that look
// up regions use the package region of the Go client instead.
package client

import (
	"bytes"
	"context"
	"encoding/json"
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

// ErrNotFound is the error of [Projects.Get] for a project that the region service does not know.
var ErrNotFound = errors.New("region client: the project is not known")

// Project is a project as the region service stores it.
type Project struct {
	ID    string
	Title string
	// Region is the name of a zone of the tz database. Region is empty if the project has no region.
	Region string
}

// StoredProject is a stored project with its zone and its current offset.
type StoredProject struct {
	Project
	// Zone is the zone with which the API answers: Region, or the default zone if Region is empty.
	Zone string
	// OffsetMinutes is the zone's current offset in minutes east of UTC, including daylight saving.
	OffsetMinutes int
}

// Rejected is the error of [Projects.Put] for a project that the region service does not accept.
type Rejected struct {
	Code    string // such as "invalid_field"; empty if the service gave no reason
	Message string // for people; it names the allowed values
}

// Error returns the message of the region service after "region client: ".
func (r *Rejected) Error() string { return "region client: " + r.Message }

// ProjectsOptions holds the optional settings of a [Projects]. The zero ProjectsOptions has the defaults.
type ProjectsOptions struct {
	// Tracer records a span for each request. Default: no spans.
	Tracer trace.TracerProvider
}

const (
	// timeout bounds a request, with the whole answer.
	timeout = 5 * time.Second
	// maxAnswer is how many bytes of an answer the client reads. A longer answer cannot be decoded.
	maxAnswer = 64 << 10
)

// Projects manages the projects of the region service at the service's internal address, and is safe for concurrent
// use. A request ends after 5 s at the latest. Failed requests are not repeated: the caller, a controller, retries.
type Projects struct {
	url    string
	key    string
	http   *http.Client
	tracer trace.Tracer
}

// NewProjects returns a Projects for the service whose internal address is baseURL, such as "http://region:9090". key
// is one of the INGEST_API_KEYS of the service. NewProjects makes no request, and fails only if baseURL is no address
// of HTTP or key is empty. The Projects keeps connections and follows no redirects. The caller closes the Projects.
func NewProjects(baseURL, key string, o ProjectsOptions) (*Projects, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("region client: the address is not like http://lectern-region.lectern")
	}
	if key == "" {
		return nil, errors.New("region client: no key given")
	}
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider()
	}
	return &Projects{
		url: strings.TrimSuffix(u.String(), "/") + "/internal/projects",
		key: key,
		http: &http.Client{
			Timeout:       timeout,
			Transport:     &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		tracer: o.Tracer.Tracer("github.com/lectern-dev/lectern/services/region/client"),
	}, nil
}

// Close closes the idle connections of the Projects.
func (p *Projects) Close() { p.http.CloseIdleConnections() }

// Get returns a stored project. By errors.Is, the error is [ErrNotFound], [ErrUnauthorized], [ErrUnavailable], or
// [context.Canceled] if the caller cancelled ctx. Any other answer of the service gives an [*Error].
func (p *Projects) Get(ctx context.Context, id string) (StoredProject, error) {
	var found struct {
		Title           string  `json:"title"`
		Region          *string `json:"region"`
		Zone            string  `json:"zone"`
		OffsetInMinutes int     `json:"offsetInMinutes"`
	}
	err := p.send(ctx, http.MethodGet, settings(id), nil, &found)
	if err != nil {
		if refused, ok := errors.AsType[*Error](err); ok && refused.Code == "project_not_found" {
			return StoredProject{}, ErrNotFound
		}
		return StoredProject{}, err
	}
	s := StoredProject{Project: Project{ID: id, Title: found.Title}, Zone: found.Zone, OffsetMinutes: found.OffsetInMinutes}
	if found.Region != nil {
		s.Region = *found.Region
	}
	return s, nil
}

// Put stores a project, and replaces the stored project with the same id. The error is a [*Rejected] if the service
// does not accept the project. The other errors of Put are the errors of [Projects.Get], except ErrNotFound.
func (p *Projects) Put(ctx context.Context, project Project) error {
	line := struct {
		ID     string  `json:"id"`
		Title  string  `json:"title"`
		Region *string `json:"region"`
	}{ID: project.ID, Title: project.Title}
	if project.Region != "" {
		line.Region = &project.Region
	}
	body, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("region client: %w", err)
	}
	var answer struct {
		Rejected int        `json:"rejected"`
		Rejects  []Rejected `json:"rejects"`
	}
	if err := p.send(ctx, http.MethodPost, "", append(body, '\n'), &answer); err != nil {
		return err
	}
	if answer.Rejected > 0 {
		if len(answer.Rejects) == 0 {
			return &Rejected{Message: "the project was rejected"}
		}
		return &answer.Rejects[0]
	}
	return nil
}

// settings returns the path of a project's title and region, below /internal/projects.
func settings(id string) string { return "/" + url.PathEscape(id) + "/settings" }

// send makes one request, and decodes the JSON of its answer into answer if the status is 200. A body is NDJSON. If
// there is no whole answer, the error is [ErrUnavailable], and also [context.Canceled] if the caller cancelled ctx.
// Any other answer gives an [*Error].
func (p *Projects) send(ctx context.Context, method, path string, body []byte, answer any) (err error) {
	ctx, span := p.tracer.Start(ctx, method+" /internal/projects", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("http.request.method", method)))
	defer func() {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}()
	sent, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("region client: %w", err)
	}
	if body != nil {
		sent.Header.Set("Content-Type", "application/x-ndjson")
	}
	sent.Header.Set("X-Api-Key", p.key)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(sent.Header))
	resp, err := p.http.Do(sent)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer resp.Body.Close()
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	got, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if resp.StatusCode != http.StatusOK {
		return refusal(resp, got)
	}
	if json.Unmarshal(got, answer) != nil {
		return &Error{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), Message: "the answer is not the service's"}
	}
	return nil
}
