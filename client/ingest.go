package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Ingester sends records, typed or as NDJSON, to the internal address of a deployment. Its key is an ingest key, not a
// project's API key.
type Ingester struct {
	transport
}

// NewIngester returns an Ingester that posts to baseURL + "/internal/<resource>".
func NewIngester(baseURL string, options ...Option) (*Ingester, error) {
	t, err := newTransport(baseURL, 10*time.Minute, options)
	if err != nil {
		return nil, err
	}
	return &Ingester{transport: t}, nil
}

// Receipt counts the results of the lines of one Send.
type Receipt struct {
	// Stored lines added or replaced a record. Existing lines were stored before.
	Stored, Existing, Rejected int
	// Changed counts the stored lines that replaced other content of the same id.
	Changed int
	// Rejects lists the first 1,000 of the rejected lines.
	Rejects []Reject
}

// Err returns nil if no line was rejected. Otherwise, its error counts them and has the first [Reject] in its chain.
func (r Receipt) Err() error {
	switch {
	case r.Rejected == 0:
		return nil
	case len(r.Rejects) == 0:
		return fmt.Errorf("%d records were rejected", r.Rejected)
	}
	return fmt.Errorf("%d of %d records were rejected; the first: %w", r.Rejected, r.Stored+r.Existing+r.Rejected, r.Rejects[0])
}

// Reject is one line that was not stored.
type Reject struct {
	// Line is the number of the line within the batch, from 1.
	Line    int
	Code    string
	Message string
}

// Error returns line, code and message on one line.
func (r Reject) Error() string { return fmt.Sprintf("line %d: %s: %s", r.Line, r.Code, r.Message) }

// MaxListedRejects bounds the rejects in a Receipt. A batch of at most this many lines gets every reject.
const MaxListedRejects = 1000

// Send posts one batch of NDJSON records of resource ("entries", "embeddable-versions"). It retries like a read, because
// sending a batch again does no harm. Rejected lines are not an error: see [Receipt.Err].
func (i *Ingester) Send(ctx context.Context, resource string, ndjson []byte) (Receipt, error) {
	build := func(ctx context.Context) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, i.base+path("internal", resource), bytes.NewReader(ndjson))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		return req, nil
	}
	var receipt Receipt
	err := i.do(ctx, build, func(r *http.Response) error {
		receipt = Receipt{}
		var body bytes.Buffer
		if _, err := body.ReadFrom(r.Body); err != nil {
			return err
		}
		if err := json.Unmarshal(body.Bytes(), &receipt); err != nil {
			return fmt.Errorf("receipt: %w", err)
		}
		return nil
	})
	return receipt, err
}

// SendEntries sends entries in one request. See [Ingester.Send].
func (i *Ingester) SendEntries(ctx context.Context, entries []Entry) (Receipt, error) {
	return send(ctx, i, "entries", entries)
}

// NewEvent is an event to send.
type NewEvent struct {
	Event
	// EventID is the source's id of the event. An event that is sent again with the same id is stored once. Without one,
	// an event that is equal in all fields to a stored one is that event.
	EventID *string `json:"event_id,omitempty"`
	// URL is the page of the event.
	URL *string `json:"url,omitempty"`
}

// SendEvents sends events in one request. An event may be sent before its entry. See [Ingester.Send].
func (i *Ingester) SendEvents(ctx context.Context, events []NewEvent) (Receipt, error) {
	return send(ctx, i, "events", events)
}

// SendEmbeddables sends embeddables in one request. The last one sent wins. See [Ingester.Send].
func (i *Ingester) SendEmbeddables(ctx context.Context, embeddables []EmbeddableWithDefinition) (Receipt, error) {
	return send(ctx, i, "embeddables", embeddables)
}

// SendEmbeddableVersions sends versions of projectID's embeddables in one request. The server rejects a version that is
// stored with other content. See [Ingester.Send].
func (i *Ingester) SendEmbeddableVersions(ctx context.Context, projectID string, versions []EmbeddableVersionWithDefinition) (Receipt, error) {
	type version struct {
		ProjectID string `json:"project_id"`
		EmbeddableVersionWithDefinition
	}
	lines := make([]version, len(versions))
	for n, v := range versions {
		lines[n] = version{projectID, v}
	}
	return send(ctx, i, "embeddable-versions", lines)
}

// SendExperiments sends projectID's experiments in one request. An empty ExperimentID is sent as the ID. See
// [Ingester.Send].
func (i *Ingester) SendExperiments(ctx context.Context, projectID string, experiments []Experiment) (Receipt, error) {
	type experiment struct {
		ProjectID string `json:"project_id"`
		Experiment
	}
	lines := make([]experiment, len(experiments))
	for n, e := range experiments {
		e.ExperimentID = cmp.Or(e.ExperimentID, e.ID)
		lines[n] = experiment{projectID, e}
	}
	return send(ctx, i, "experiments", lines)
}

// NewProject is a project to send.
type NewProject struct {
	Project
	// Region is a zone of the tz database; nil for none.
	Region *string `json:"region"`
}

// SendProjects sends projects in one request. The last one sent wins. See [Ingester.Send].
func (i *Ingester) SendProjects(ctx context.Context, projects []NewProject) (Receipt, error) {
	return send(ctx, i, "projects", projects)
}

func send[T any](ctx context.Context, i *Ingester, resource string, records []T) (Receipt, error) {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, record := range records {
		if err := encoder.Encode(record); err != nil {
			return Receipt{}, err
		}
	}
	return i.Send(ctx, resource, lines.Bytes())
}
