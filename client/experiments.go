package client

import (
	"context"
	"iter"
)

// Experiments iterates over the experiments of projectID that q selects, the newest first. An error is the last item.
func (c *Client) Experiments(ctx context.Context, projectID string, q ExperimentQuery) iter.Seq2[Experiment, error] {
	return walk[Experiment](ctx, c, q.List(projectID), q.Paging)
}

// ExperimentsPage reads one page of the list of [Client.Experiments]. The page has the cursor of the next page.
func (c *Client) ExperimentsPage(ctx context.Context, projectID string, q ExperimentQuery) (Page[Experiment], error) {
	return readPage[Experiment](ctx, c, q.List(projectID), q.Cursor, q.size(0))
}

// Experiment reads one experiment. For an unknown id, the error has the code [CodeExperimentNotFound], which [Code]
// returns.
func (c *Client) Experiment(ctx context.Context, projectID, experimentID string) (Experiment, error) {
	return readOne[Experiment](ctx, c, List{path: path("projects", projectID, "experiments", experimentID)})
}

// ExperimentJSON reads one experiment and returns the body of the answer unchanged. The errors are those of
// [Client.Experiment].
func (c *Client) ExperimentJSON(ctx context.Context, projectID, experimentID string) ([]byte, error) {
	return c.body(ctx, path("projects", projectID, "experiments", experimentID))
}

// ExperimentHistory reads all changes of one experiment's status, the oldest first. For an unknown id, the error has
// the code [CodeExperimentNotFound], which [Code] returns.
func (c *Client) ExperimentHistory(ctx context.Context, projectID, experimentID string) ([]ExperimentStatusChange, error) {
	return readOne[[]ExperimentStatusChange](ctx, c, List{path: historyPath(projectID, experimentID)})
}

// ExperimentHistoryJSON reads all changes of one experiment's status and returns the body of the answer unchanged. The
// errors are those of [Client.ExperimentHistory].
func (c *Client) ExperimentHistoryJSON(ctx context.Context, projectID, experimentID string) ([]byte, error) {
	return c.body(ctx, historyPath(projectID, experimentID))
}

func historyPath(projectID, experimentID string) string {
	return path("projects", projectID, "experiments", experimentID, "history")
}
