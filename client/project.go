package client

import (
	"context"
	"encoding/json"
	"fmt"
)

// Project reads the public data of a project, and needs no API key. For an unknown id, the error has the code
// [CodeProjectNotFound], which [Code] returns.
func (c *Client) Project(ctx context.Context, projectID string) (Project, error) {
	return readOne[Project](ctx, c, List{path: path("projects", projectID)})
}

// ProjectJSON reads a project and returns the body of the answer unchanged. The errors are those of [Client.Project].
func (c *Client) ProjectJSON(ctx context.Context, projectID string) ([]byte, error) {
	return c.body(ctx, path("projects", projectID))
}

// ProjectAccess is a project that the client's key or token may read, with the scopes for the project.
type ProjectAccess struct {
	ProjectID string   `json:"projectId"`
	Title     string   `json:"title"`
	Scopes    []string `json:"scopes"`
}

// Projects reads all projects that the client's key or token may read, page by page, sorted by id.
func (c *Client) Projects(ctx context.Context) ([]ProjectAccess, error) {
	var all []ProjectAccess
	for cursor := ""; ; {
		body, next, err := c.JSON(ctx, List{path: path("me", "projects")}, cursor, 0)
		if err != nil {
			return nil, err
		}
		var page []ProjectAccess
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, fmt.Errorf("the list of projects: %w", err)
		}
		if all = append(all, page...); next == "" {
			return all, nil
		}
		cursor = next
	}
}
