package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Ingester sends records to a deployment's internal ports. Its key is an ingest key, not an API key of
// a project.
type Ingester struct {
	transport
}

// NewIngester returns an Ingester that posts to baseURL + "/internal/<resource>".
func NewIngester(baseURL string, options ...Option) (*Ingester, error) {
	t, err := newTransport(baseURL, options)
	if err != nil {
		return nil, err
	}
	return &Ingester{transport: t}, nil
}

// Receipt says what became of the lines of one Send.
type Receipt struct {
	// Stored lines are new or changed a record; Existing ones were there already.
	Stored, Existing, Rejected int
	// Rejects lists the first 1,000 of the rejected lines.
	Rejects []Reject
}

// Reject is one line that was not stored.
type Reject struct {
	// Line counts from 1 within what was sent.
	Line    int
	Code    string
	Message string
}

// MaxListedRejects is how many rejects an answer lists at most. Whoever sends no more lines at once
// learns of each.
const MaxListedRejects = 1000

// Send posts one batch of NDJSON records of resource ("entries", "embeddable-versions"). Sending a batch again is
// harmless, so it is repeated as reads are. Lines that were rejected are no error: see the receipt.
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
