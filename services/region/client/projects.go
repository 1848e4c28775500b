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

// ErrNotFound says that the service knows no such project. It is told apart by errors.Is.
var ErrNotFound = errors.New("region client: the project is not known")

// Project is a project as the service keeps it.
type Project struct {
	ID    string
	Title string
	// Region is the zone of the tz database that was set, empty for none.
	Region string
}

// StoredProject is a project and what follows from it.
type StoredProject struct {
	Project
	// Zone is the zone that the API answers with, also where none is set.
	Zone string
	// OffsetMinutes is how many minutes that is east of UTC now, daylight saving counted.
	OffsetMinutes int
}

// Rejected is a project that the service does not take.
type Rejected struct {
	Code    string // such as "invalid_field"
	Message string // says what is allowed
}

// Error gives what the service said.
func (r *Rejected) Error() string { return "region client: " + r.Message }

// ProjectsOptions say how a [Projects] behaves. The zero value is fit for use.
type ProjectsOptions struct {
	// Timeout bounds a request. Default: 5 s.
	Timeout time.Duration
	// HTTP makes the requests. Default: a client of its own that keeps connections.
	HTTP *http.Client
	// Tracer makes a span of each request. Default: no spans.
	Tracer trace.TracerProvider
}

// Projects tells the region service which projects there are, at its internal address. Each request is made
// once: whoever keeps projects in step asks again by itself. It may be used by several goroutines.
type Projects struct {
	url     string
	key     string
	timeout time.Duration
	http    *http.Client
	own     *http.Transport // nil when the caller brought its HTTP client
	tracer  trace.Tracer
	pass    propagation.TraceContext
}

// NewProjects returns a Projects of the service whose internal address is baseURL, such as
// "http://region:9090". key is one of the service's INGEST_API_KEYS. Nothing is asked yet. The caller closes it.
func NewProjects(baseURL, key string, o ProjectsOptions) (*Projects, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("region client: the address is not like http://region:9090")
	}
	if key == "" {
		return nil, errors.New("region client: no key given")
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider()
	}
	p := &Projects{
		url: strings.TrimSuffix(u.String(), "/") + "/internal/projects", key: key, timeout: o.Timeout, http: o.HTTP,
		tracer: o.Tracer.Tracer("github.com/lectern-dev/lectern/services/region/client"),
	}
	if p.http == nil {
		p.own = &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: o.Timeout}
		p.http = &http.Client{Transport: p.own, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return p, nil
}

// Close closes the connections that it keeps.
func (p *Projects) Close() {
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
}

// Get returns a project as it is stored, or [ErrNotFound], [ErrUnauthorized], [ErrUnavailable], ctx's own
// error, or an [*Error] with what the service answered.
func (p *Projects) Get(ctx context.Context, id string) (StoredProject, error) {
	var found struct {
		Title           string  `json:"title"`
		Region          *string `json:"region"`
		Zone            string  `json:"zone"`
		OffsetInMinutes int     `json:"offsetInMinutes"`
	}
	err := p.do(ctx, http.MethodGet, "/"+url.PathEscape(id), nil, &found)
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

// Put stores a project as it is given, whatever was stored of it before. The error is a [*Rejected] for one
// that the service does not take, or as of [Projects.Get].
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
	var said struct {
		Rejected int        `json:"rejected"`
		Rejects  []Rejected `json:"rejects"`
	}
	if err := p.do(ctx, http.MethodPost, "", append(body, '\n'), &said); err != nil {
		return err
	}
	if said.Rejected > 0 {
		if len(said.Rejects) == 0 {
			return &Rejected{Message: "the project was rejected"}
		}
		return &said.Rejects[0]
	}
	return nil
}

// Delete has the service forget a project. It is no error when the project is not known. Errors are as of
// [Projects.Get].
func (p *Projects) Delete(ctx context.Context, id string) error {
	return p.do(ctx, http.MethodDelete, "/"+url.PathEscape(id), nil, new(struct{}))
}

// do makes one request and reads its answer into answer.
func (p *Projects) do(ctx context.Context, method, path string, body []byte, answer any) (err error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	ctx, span := p.tracer.Start(ctx, method+" /internal/projects", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("http.request.method", method)))
	defer func() {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}()
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("region client: %w", err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/x-ndjson")
	}
	r.Header.Set("X-Api-Key", p.key)
	p.pass.Inject(ctx, propagation.HeaderCarrier(r.Header))
	resp, err := p.http.Do(r)
	if err != nil {
		return broken(ctx, err)
	}
	defer resp.Body.Close()
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	answered, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return broken(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return refusal(resp, answered)
	}
	if err := json.Unmarshal(answered, answer); err != nil {
		return &Error{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), Message: "the answer is not the service's"}
	}
	return nil
}
