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

// Ingester sends records, typed or as NDJSON, to the internal address of a deployment. The key of an Ingester is an
// ingest key, not the API key of a project. An Ingester is safe for concurrent use.
type Ingester struct {
	transport
}

// NewIngester returns an Ingester that posts to baseURL + "/internal/<resource>". baseURL must have the form that
// [New] requires.
func NewIngester(baseURL string, options ...Option) (*Ingester, error) {
	t, err := newTransport(baseURL, 10*time.Minute, options)
	if err != nil {
		return nil, err
	}
	return &Ingester{transport: t}, nil
}

// Receipt is the server's answer to one batch: how many lines were stored, changed nothing, or were rejected.
type Receipt struct {
	// Stored counts the lines that added or replaced a record. Existing counts the lines that changed nothing, because
	// their record or a newer one was stored. Rejected counts the lines that the server did not store.
	Stored, Existing, Rejected int
	// Changed counts the Stored lines that replaced a record of the same id with other content.
	Changed int
	// Rejects lists the rejected lines, at most the first [MaxListedRejects].
	Rejects []Reject
}

// Err returns nil if no line was rejected. Otherwise, the message has the number of rejected lines. The chain of the
// error has the first of Rejects, if there is one.
func (r Receipt) Err() error {
	switch {
	case r.Rejected == 0:
		return nil
	case len(r.Rejects) == 0:
		return fmt.Errorf("%d records were rejected", r.Rejected)
	}
	return fmt.Errorf("%d of %d records were rejected; the first: %w", r.Rejected, r.Stored+r.Existing+r.Rejected, r.Rejects[0])
}

// Reject is a line of a batch that the server did not store, with the reason. A Reject is an error.
type Reject struct {
	// Line is the number of the line within the batch. The first line is 1.
	Line    int
	Code    string
	Message string
}

// Error returns the line number, the code and the message as one line of text.
func (r Reject) Error() string { return fmt.Sprintf("line %d: %s: %s", r.Line, r.Code, r.Message) }

// MaxListedRejects is the greatest length of [Receipt].Rejects. A batch of at most this many lines gets every reject.
const MaxListedRejects = 1000

// Send posts one batch of NDJSON records to a resource, such as "entries" or "embeddable-versions". The client retries
// Send like a read, because the server stores a repeated record once. Rejected lines are not an error: see
// [Receipt.Err].
func (i *Ingester) Send(ctx context.Context, resource string, ndjson []byte) (Receipt, error) {
	r := request{method: http.MethodPost, path: path("internal", resource), contentType: "application/x-ndjson", body: ndjson}
	var receipt Receipt
	err := i.do(ctx, r, func(r *http.Response) error {
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

// SendEntries sends entries in one request. An entry replaces a stored entry of the same id, unless the stored entry
// has a later UpdatedAt. See [Ingester.Send].
func (i *Ingester) SendEntries(ctx context.Context, entries []Entry) (Receipt, error) {
	return send(ctx, i, "entries", entries)
}

// NewEvent is an event for [Ingester.SendEvents]: an [Event] with the id and the page that the source knows.
type NewEvent struct {
	Event
	// EventID is the id that the source gave the event. The server stores an event once, even if the source sends the
	// same id again. If EventID is nil, the server compares all fields: an event that equals a stored event is not
	// stored again.
	EventID *string `json:"event_id,omitempty"`
	// URL is the address of the page on which the event happened; nil if the source does not know the page.
	URL *string `json:"url,omitempty"`
}

// SendEvents sends events in one request. An event may be sent before its entry. See [Ingester.Send].
func (i *Ingester) SendEvents(ctx context.Context, events []NewEvent) (Receipt, error) {
	return send(ctx, i, "events", events)
}

// SendEmbeddables sends embeddables in one request. An embeddable replaces a stored embeddable of the same id. See
// [Ingester.Send].
func (i *Ingester) SendEmbeddables(ctx context.Context, embeddables []EmbeddableWithDefinition) (Receipt, error) {
	return send(ctx, i, "embeddables", embeddables)
}

// SendEmbeddableVersions sends versions of projectID's embeddables in one request. The server rejects a version whose
// number is already stored with other content. See [Ingester.Send].
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

// NewProject is a project for [Ingester.SendProjects]: a [Project] and the project's region.
type NewProject struct {
	Project
	// Region is a name in the tz database, such as Europe/Berlin; nil for a project without a region.
	Region *string `json:"region"`
}

// SendProjects sends projects in one request. A project replaces a stored project of the same id. See [Ingester.Send].
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
