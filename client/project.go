package client

import "context"

// Project reads a project, for which no key is needed. One that does not exist is an [*Error] with the
// code "project_not_found".
func (c *Client) Project(ctx context.Context, projectID string) (Project, error) {
	return readOne[Project](ctx, c, path("projects", projectID))
}

// ProjectJSON reads a project as the bytes of the answer.
func (c *Client) ProjectJSON(ctx context.Context, projectID string) ([]byte, error) {
	return c.body(ctx, path("projects", projectID))
}
