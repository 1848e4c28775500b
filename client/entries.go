package client

import (
	"context"
	"iter"
)

// Entries iterates over the entries of projectID that q selects. An error is the last item.
func (c *Client) Entries(ctx context.Context, projectID string, q EntryQuery) iter.Seq2[Entry, error] {
	return walk[Entry](ctx, c, q.List(projectID), q.Paging)
}

// EntriesPage reads one page of the list of [Client.Entries]. The page has the cursor of the next page.
func (c *Client) EntriesPage(ctx context.Context, projectID string, q EntryQuery) (Page[Entry], error) {
	return readPage[Entry](ctx, c, q.List(projectID), q.Cursor, q.size(0))
}

// Entry reads one entry. For an unknown id, the error has the code [CodeEntryNotFound], which [Code] returns.
func (c *Client) Entry(ctx context.Context, projectID, entryID string) (Entry, error) {
	return readOne[Entry](ctx, c, List{path: path("projects", projectID, "entries", entryID)})
}

// EntryJSON reads one entry and returns the body of the answer unchanged. The errors are those of [Client.Entry].
func (c *Client) EntryJSON(ctx context.Context, projectID, entryID string) ([]byte, error) {
	return c.body(ctx, path("projects", projectID, "entries", entryID))
}

// Events iterates over the events of one entry, in the order that q selects. An error is the last item. For an unknown
// entry, the error has the code [CodeEntryNotFound].
func (c *Client) Events(ctx context.Context, projectID, entryID string, q EventQuery) iter.Seq2[Event, error] {
	return walk[Event](ctx, c, q.List(projectID, entryID), q.Paging)
}

// EventsPage reads one page of the list of [Client.Events]. The page has the cursor of the next page.
func (c *Client) EventsPage(ctx context.Context, projectID, entryID string, q EventQuery) (Page[Event], error) {
	return readPage[Event](ctx, c, q.List(projectID, entryID), q.Cursor, q.size(0))
}

// PageViews iterates over the entries of projectID that q selects, each with its page views. An error is the last item.
func (c *Client) PageViews(ctx context.Context, projectID string, q PageViewQuery) iter.Seq2[EntryPageViews, error] {
	return walk[EntryPageViews](ctx, c, q.List(projectID), q.Paging)
}

// PageViewsPage reads one page of the list of [Client.PageViews]. The page has the cursor of the next page.
func (c *Client) PageViewsPage(ctx context.Context, projectID string, q PageViewQuery) (Page[EntryPageViews], error) {
	return readPage[EntryPageViews](ctx, c, q.List(projectID), q.Cursor, q.size(0))
}
