package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	// attempts is the greatest number of requests for one answer.
	attempts = 4

	// firstPause and longestPause bound the random pause before a retry. A service may ask for a longer one.
	firstPause   = 50 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// ask asks the service, with retries. at is nil for now.
func (c *Client) ask(ctx context.Context, projectID string, at *time.Time) (Region, error) {
	if c.closed.Err() != nil {
		return Region{}, ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	defer context.AfterFunc(c.closed, cancel)()

	lookUp := struct {
		ProjectID string `json:"projectId"`
		At        string `json:"at,omitempty"`
	}{ProjectID: projectID}
	if at != nil {
		lookUp.At = at.UTC().Format("2006-01-02T15:04:05.999999Z")
	}
	body, err := json.Marshal(lookUp)
	if err != nil {
		return Region{}, fmt.Errorf("region client: %w", err)
	}
	for attempt := 0; ; attempt++ {
		var found Region
		err := c.do(ctx, request{
			span: "POST /api/projects/region", method: http.MethodPost, contentType: "application/json", body: body, resends: attempt,
		}, found.decode)
		switch {
		case err == nil:
			return found, nil
		case c.closed.Err() != nil:
			return Region{}, ErrClosed
		case !errors.Is(err, ErrUnavailable), attempt == attempts-1:
			return Region{}, err
		}
		pause := rand.N(min(firstPause<<attempt, longestPause))
		if refused, ok := errors.AsType[*Error](err); ok {
			pause = max(pause, refused.retryAfter)
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= pause {
			return Region{}, err // no time is left for a retry
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return Region{}, err
		}
	}
}

// decode reads an answer of the service.
func (r *Region) decode(body []byte) error {
	var answer struct {
		Region          string `json:"region"`
		OffsetInMinutes *int   `json:"offsetInMinutes"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Region == "" || answer.OffsetInMinutes == nil {
		return errors.New("the answer is no region")
	}
	*r = Region{Name: answer.Region, OffsetMinutes: *answer.OffsetInMinutes}
	return nil
}
