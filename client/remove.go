package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Removed counts the entries and events that a request removed.
type Removed struct {
	Entries int `json:"entries"`
	Events  int `json:"events"`
	// More reports that the request reached its bound. Repeat it to remove the rest.
	More bool `json:"more,omitzero"`
}

// EraseEntry removes an entry and its events permanently: the server rejects later data for its id. Repeating it does no
// harm.
func (a *Administrator) EraseEntry(ctx context.Context, projectID, entryID string) (Removed, error) {
	var removed Removed
	err := a.call(ctx, &a.transport, http.MethodDelete, path("internal", "projects", projectID, "entries", entryID), nil, &removed)
	return removed, err
}

// EraseContact permanently removes all entries of a contact, all entries that an event of the contact names, and their
// events. Repeating it does no harm.
func (a *Administrator) EraseContact(ctx context.Context, projectID, contactID string) (Removed, error) {
	var removed Removed
	err := a.call(ctx, &a.transport, http.MethodDelete, path("internal", "projects", projectID, "contacts", contactID), nil, &removed)
	return removed, err
}

// Purge removes entries that were last updated before a time, and older events whose entry never arrived. One request
// removes at most 10,000 entries. A dry run counts them and removes nothing. Repeating Purge does no harm.
func (a *Administrator) Purge(ctx context.Context, projectID string, before time.Time, dryRun bool) (Removed, error) {
	var removed Removed
	wanted := struct {
		UpdatedBefore time.Time `json:"updated_before"`
		DryRun        bool      `json:"dry_run"`
	}{before.UTC(), dryRun}
	err := a.call(ctx, &a.transport, http.MethodPost, path("internal", "projects", projectID, "purge"), wanted, &removed)
	return removed, err
}

// RemovedProject counts the records of a project that one request removed, and its revoked keys.
type RemovedProject struct {
	// Records holds the numbers of removed records by their name, such as "entries".
	Records map[string]int
	// More reports that the request reached its bound. Repeat it to remove the rest.
	More bool
}

// UnmarshalJSON decodes the answer: numbers of records, and "more".
func (r *RemovedProject) UnmarshalJSON(b []byte) error {
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	*r = RemovedProject{Records: map[string]int{}}
	for name, value := range fields {
		switch v := value.(type) {
		case float64:
			r.Records[name] = int(v)
		case bool:
			if name == "more" {
				r.More = v
			}
		}
	}
	return nil
}

// RemoveProject revokes the project's keys, and then removes its data from all services. If a service fails, the error is an
// [*Error] with the code "unavailable" that names it. Repeat RemoveProject then, and while the result has More. Repeating it
// does no harm.
func (a *Administrator) RemoveProject(ctx context.Context, projectID string) (RemovedProject, error) {
	var removed RemovedProject
	err := a.call(ctx, &a.transport, http.MethodDelete, path("internal", "projects", projectID), nil, &removed)
	return removed, err
}
