package client

import "context"

// Project reads the public data of a project, and needs no API key. For an unknown id, the error has the code
// [CodeProjectNotFound], which [Code] returns.
func (c *Client) Project(ctx context.Context, projectID string) (Project, error) {
	return readOne[Project](ctx, c, path("projects", projectID))
}

// ProjectJSON reads a project and returns the body of the answer unchanged. The errors are those of [Client.Project].
func (c *Client) ProjectJSON(ctx context.Context, projectID string) ([]byte, error) {
	return c.body(ctx, path("projects", projectID))
}
