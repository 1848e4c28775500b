package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Ingester sends records to the internal ports of a deployment. Its key is an ingest key, not a project's API key.
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

// Receipt counts the results of the lines of one Send.
type Receipt struct {
	// Stored lines added or changed a record. Existing lines were stored before.
	Stored, Existing, Rejected int
	// Rejects lists the first 1,000 of the rejected lines.
	Rejects []Reject
}

// Reject is one line that was not stored.
type Reject struct {
	// Line is the number of the line within the batch, from 1.
	Line    int
	Code    string
	Message string
}

// MaxListedRejects bounds the rejects in a Receipt. A batch of at most this many lines gets every reject.
const MaxListedRejects = 1000

// Send posts one batch of NDJSON records of resource ("entries", "embeddable-versions"). It retries like a read, because
// sending a batch again does no harm. Rejected lines are not an error; the Receipt lists them.
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
