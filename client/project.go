package client

import "context"

// Project reads a project. It needs no key. For an unknown project, it returns an [*Error] with the code
// [CodeProjectNotFound].
func (c *Client) Project(ctx context.Context, projectID string) (Project, error) {
	return readOne[Project](ctx, c, path("projects", projectID))
}

// ProjectJSON reads a project as the bytes of the answer.
func (c *Client) ProjectJSON(ctx context.Context, projectID string) ([]byte, error) {
	return c.body(ctx, path("projects", projectID))
}
