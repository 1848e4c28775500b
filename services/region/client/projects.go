// Package client is the client by which the operator manages the projects of the region service. Services that look
// up regions use the package region of the Go client instead.
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
	// Timeout bounds a request. Default: 5 s.
	Timeout time.Duration
	// HTTP makes the requests. Default: a client that only this Projects uses, which keeps connections and follows no
	// redirects.
	HTTP *http.Client
	// Tracer records a span for each request. Default: no spans.
	Tracer trace.TracerProvider
}

// Projects manages the projects of the region service at the service's internal address, and is safe for concurrent
// use. Failed requests are not repeated: the caller, a controller, retries.
type Projects struct {
	*endpoint
	timeout time.Duration
}

// NewProjects returns a Projects for the service whose internal address is baseURL, such as "http://region:9090". key
// is one of the INGEST_API_KEYS of the service. NewProjects makes no request, and fails only if baseURL or key cannot
// be used. The caller closes the Projects.
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

// Close closes the idle connections of the Projects. Close does nothing if the caller has set [ProjectsOptions.HTTP].
func (p *Projects) Close() { p.close() }

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

// send makes one request within the timeout, and decodes the JSON of its answer into answer.
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
