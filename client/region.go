package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Region reads the region of projectID and its offset from UTC at the time at; the zero time is now. Region is for
// trusted services: the client's key must be an internal key, which no other operation accepts. For a project without a
// region, and for an unknown project, the server returns the [DefaultRegion].
//
// A service that needs regions often should use the package region, which caches them.
func (c *Client) Region(ctx context.Context, projectID string, at time.Time) (Region, error) {
	var region Region
	body, source, err := c.RegionJSON(ctx, projectID, at)
	if err != nil {
		return Region{}, err
	}
	if err := json.Unmarshal(body, &region); err != nil || region.Name == "" {
		return Region{}, errors.New("the answer is no region: is the base URL the region service's?")
	}
	region.Source = source
	return region, nil
}

// RegionJSON reads the region like [Client.Region], but returns the body of the answer unchanged and unchecked, and the
// region's source.
func (c *Client) RegionJSON(ctx context.Context, projectID string, at time.Time) (body []byte, source RegionSource, err error) {
	lookUp := struct {
		ProjectID string     `json:"projectId"`
		At        *time.Time `json:"at,omitempty"`
	}{ProjectID: projectID}
	if !at.IsZero() {
		lookUp.At = new(at.UTC())
	}
	asked, err := json.Marshal(lookUp)
	if err != nil {
		return nil, "", err
	}
	r := request{method: http.MethodPost, path: "/api/projects/region", contentType: "application/json", body: asked}
	err = c.do(ctx, r, func(r *http.Response) (err error) {
		source = RegionSource(r.Header.Get("X-Region-Source"))
		body, err = readBody(r.Body)
		return err
	})
	return body, source, err
}
