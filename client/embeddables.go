package client

import (
	"context"
	"iter"
	"strconv"
)

// Embeddables iterates over projectID's embeddables, ordered by id. An error is the last item.
func (c *Client) Embeddables(ctx context.Context, projectID string, q EmbeddableQuery) iter.Seq2[Embeddable, error] {
	return walk[Embeddable](ctx, c, q.List(projectID), q.Paging)
}

// EmbeddablesPage reads one page of the list of [Client.Embeddables]. The page has the cursor of the next page.
func (c *Client) EmbeddablesPage(ctx context.Context, projectID string, q EmbeddableQuery) (Page[Embeddable], error) {
	return readPage[Embeddable](ctx, c, q.List(projectID), q.Cursor, q.size(0))
}

// Embeddable reads one embeddable with its definition. For an unknown id, the error has the code
// [CodeEmbeddableDoesNotExist], which [Code] returns.
func (c *Client) Embeddable(ctx context.Context, projectID, embeddableID string) (EmbeddableWithDefinition, error) {
	return readOne[EmbeddableWithDefinition](ctx, c, List{path: embeddablePath(projectID, embeddableID)})
}

// EmbeddableJSON reads one embeddable and returns the body of the answer unchanged. The errors are those of
// [Client.Embeddable].
func (c *Client) EmbeddableJSON(ctx context.Context, projectID, embeddableID string) ([]byte, error) {
	return c.body(ctx, embeddablePath(projectID, embeddableID))
}

// Versions iterates over the versions of one embeddable, ordered by number. An error is the last item. For an unknown
// embeddable, the error has the code [CodeEmbeddableDoesNotExist].
func (c *Client) Versions(ctx context.Context, projectID, embeddableID string, q VersionQuery) iter.Seq2[EmbeddableVersion, error] {
	return walk[EmbeddableVersion](ctx, c, q.List(projectID, embeddableID), q.Paging)
}

// VersionsPage reads one page of the list of [Client.Versions]. The page has the cursor of the next page.
func (c *Client) VersionsPage(ctx context.Context, projectID, embeddableID string, q VersionQuery) (Page[EmbeddableVersion], error) {
	return readPage[EmbeddableVersion](ctx, c, q.List(projectID, embeddableID), q.Cursor, q.size(0))
}

// Version reads one version of an embeddable with the version's definition. For an unknown embeddable or version, the
// error has the code [CodeEmbeddableVersionDoesNotExist], which [Code] returns.
func (c *Client) Version(ctx context.Context, projectID, embeddableID string, number int64) (EmbeddableVersionWithDefinition, error) {
	return readOne[EmbeddableVersionWithDefinition](ctx, c, List{path: versionPath(projectID, embeddableID, number)})
}

// VersionJSON reads one version of an embeddable and returns the body of the answer unchanged. The errors are those of
// [Client.Version].
func (c *Client) VersionJSON(ctx context.Context, projectID, embeddableID string, number int64) ([]byte, error) {
	return c.body(ctx, versionPath(projectID, embeddableID, number))
}

func embeddablePath(projectID, embeddableID string) string {
	return path("projects", projectID, "embeddables", embeddableID)
}

func versionPath(projectID, embeddableID string, number int64) string {
	return path("projects", projectID, "embeddables", embeddableID, "versions", strconv.FormatInt(number, 10))
}
