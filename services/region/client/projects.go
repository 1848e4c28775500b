// Package client manages the projects of the region service, for the operator. Services that look regions up use the
// package region of the Go client.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// ErrNotFound means that the service does not know the project. It is for errors.Is.
var ErrNotFound = errors.New("region client: the project is not known")

// Project is a project as the service keeps it.
type Project struct {
	ID    string
	Title string
	// Region is the zone of the tz database that was set, empty for none.
	Region string
}

// StoredProject is a project with its zone and offset.
type StoredProject struct {
	Project
	// Zone is the zone that the API answers with: Region, or the default.
	Zone string
	// OffsetMinutes is the zone's current offset in minutes east of UTC, including daylight saving.
	OffsetMinutes int
}

// Rejected is the reason why the service does not accept a project.
type Rejected struct {
	Code    string // such as "invalid_field"
	Message string // for people; it names the allowed values
}

// Error returns the message of the service.
func (r *Rejected) Error() string { return "region client: " + r.Message }

// ProjectsOptions configure a [Projects]. The zero value is ready to use.
type ProjectsOptions struct {
	// Timeout bounds a request. Default: 5 s.
	Timeout time.Duration
	// HTTP makes the requests. Default: a client of its own that keeps connections.
	HTTP *http.Client
	// Tracer records a span for each request. Default: no spans.
	Tracer trace.TracerProvider
}

// Projects manages the projects of the region service, at its internal address. It makes each request once:
// a controller that keeps projects in step retries by itself. It is safe for concurrent use.
type Projects struct {
	*endpoint
	timeout time.Duration
}

// NewProjects returns a Projects of the service whose internal address is baseURL, such as
// "http://region:9090". key is one of the service's INGEST_API_KEYS. NewProjects makes no request. The
// caller closes it.
func NewProjects(baseURL, key string, o ProjectsOptions) (*Projects, error) {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	e, err := newEndpoint(baseURL, "/internal/projects", key, o.HTTP, o.Tracer)
	if err != nil {
		return nil, err
	}
	return &Projects{endpoint: e, timeout: o.Timeout}, nil
}

// Close closes the idle connections.
func (p *Projects) Close() { p.close() }

// Get returns a stored project. The error is [ErrNotFound], [ErrUnauthorized], [ErrUnavailable], ctx's own,
// or an [*Error] with the answer of the service.
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

// Put stores a project and replaces the stored one. The error is a [*Rejected] if the service does not accept the
// project, or one of those of [Projects.Get].
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

// settings returns the path of a project's title and region.
func settings(id string) string { return "/" + url.PathEscape(id) + "/settings" }

// send makes one request and decodes its answer into answer.
func (p *Projects) send(ctx context.Context, method, path string, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	return p.do(ctx, request{
		span: method + " /internal/projects", method: method, path: path, contentType: "application/x-ndjson", body: body,
	}, func(body []byte) error {
		if json.Unmarshal(body, answer) != nil {
			return errors.New("the answer is not the service's")
		}
		return nil
	})
}
