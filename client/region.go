package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Region reads the region of projectID and its offset at the time at; the zero time is now. It is for trusted services:
// the client's key must be an internal key, which no other operation accepts. For a project without a region, and for an
// unknown project, the server returns the default region.
//
// Services in the cluster that call it often should use services/region/client, which has a cache.
func (c *Client) Region(ctx context.Context, projectID string, at time.Time) (Region, error) {
	var region Region
	body, err := c.RegionJSON(ctx, projectID, at)
	if err != nil {
		return region, err
	}
	if err := json.Unmarshal(body, &region); err != nil {
		return Region{}, fmt.Errorf("the region of %q: %w", projectID, err)
	}
	return region, nil
}

// RegionJSON reads the region like [Client.Region], but returns the bytes of the answer.
func (c *Client) RegionJSON(ctx context.Context, projectID string, at time.Time) ([]byte, error) {
	lookUp := struct {
		ProjectID string     `json:"projectId"`
		At        *time.Time `json:"at,omitempty"`
	}{ProjectID: projectID}
	if !at.IsZero() {
		lookUp.At = new(at.UTC())
	}
	asked, err := json.Marshal(lookUp)
	if err != nil {
		return nil, err
	}
	build := func(ctx context.Context) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/api/projects/region", bytes.NewReader(asked))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		return req, nil
	}
	var body []byte
	err = c.do(ctx, build, func(r *http.Response) (err error) {
		body, err = io.ReadAll(r.Body)
		return err
	})
	return body, err
}
