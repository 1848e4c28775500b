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

// ProjectAccess is a project that the client's key or token may read, with the scopes for the project.
type ProjectAccess struct {
	ProjectID string   `json:"projectId"`
	Title     string   `json:"title"`
	Scopes    []string `json:"scopes"`
}

// Projects reads the projects that the client's key or token may read, sorted by id. The server returns at most 1,000.
func (c *Client) Projects(ctx context.Context) ([]ProjectAccess, error) {
	return readOne[[]ProjectAccess](ctx, c, path("me", "projects"))
}
