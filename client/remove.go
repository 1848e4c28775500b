package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Removed is how many entries and events the server removed in one request.
type Removed struct {
	Entries int `json:"entries"`
	Events  int `json:"events"`
	// More reports that the request reached the server's bound for one request. The caller repeats the request to
	// remove the rest.
	More bool `json:"more,omitzero"`
	// Cursor is where the next request of a purge goes on, or empty after the last request.
	Cursor string `json:"cursor,omitzero"`
}

// Unfinished reports whether a purge needs another request.
func (r Removed) Unfinished() bool { return r.More || r.Cursor != "" }

// EraseEntry removes an entry and its events permanently: the server rejects later data for the entry's id. Erasing an
// erased entry does no harm.
func (a *Administrator) EraseEntry(ctx context.Context, projectID, entryID string) (Removed, error) {
	return call[Removed](ctx, &a.transport, http.MethodDelete, path("internal", "projects", projectID, "entries", entryID), nil)
}

// EraseContact permanently removes all entries of a contact, and all entries that an event of the contact names. The
// events of these entries are removed too. Repeating EraseContact does no harm.
func (a *Administrator) EraseContact(ctx context.Context, projectID, contactID string) (Removed, error) {
	return call[Removed](ctx, &a.transport, http.MethodDelete, path("internal", "projects", projectID, "contacts", contactID), nil)
}

// Purge removes entries that were last updated before a time, with their events, and older events whose entry never
// arrived. One request removes at most 10,000 entries, and searches a part of the events. With dryRun, the server counts
// the entries and events and removes nothing. Repeating Purge does no harm.
func (a *Administrator) Purge(ctx context.Context, projectID string, before time.Time, dryRun bool) (Removed, error) {
	return a.PurgeFrom(ctx, projectID, before, dryRun, "")
}

// PurgeFrom goes on with a purge at the Cursor of the answer before.
func (a *Administrator) PurgeFrom(ctx context.Context, projectID string, before time.Time, dryRun bool, cursor string) (Removed, error) {
	wanted := struct {
		UpdatedBefore time.Time `json:"updated_before"`
		DryRun        bool      `json:"dry_run"`
		Cursor        string    `json:"cursor,omitempty"`
	}{before.UTC(), dryRun, cursor}
	return call[Removed](ctx, &a.transport, http.MethodPost, path("internal", "projects", projectID, "purge"), wanted)
}

// PurgedDefinitions is how many definitions of embeddables the server removed in one request.
type PurgedDefinitions struct {
	Definitions int `json:"definitions"`
	// More reports that the request reached the server's bound for one request. The caller repeats the request to
	// remove the rest.
	More bool `json:"more,omitzero"`
}

// PurgeDefinitions removes the definitions of a project's embeddables to which no embeddable and no version refers. With
// dryRun, the server counts the definitions and removes nothing. Repeating PurgeDefinitions does no harm.
func (a *Administrator) PurgeDefinitions(ctx context.Context, projectID string, dryRun bool) (PurgedDefinitions, error) {
	wanted := struct {
		DryRun bool `json:"dry_run"`
	}{dryRun}
	return call[PurgedDefinitions](ctx, &a.transport, http.MethodPost, path("internal", "projects", projectID, "definitions", "purge"), wanted)
}

// Restored tells the entries service that its database was restored, to the time to unless it is zero. All readers of
// changes after that time, or after the newest change that a project has, then get a [HistoryLostError]. Restored
// returns the number of projects. Repeating Restored makes readers that went on meanwhile read again.
func (a *Administrator) Restored(ctx context.Context, to time.Time) (projects int, err error) {
	wanted := struct {
		To    *time.Time `json:"to,omitempty"`
		After string     `json:"after,omitempty"`
	}{}
	if !to.IsZero() {
		to = to.UTC()
		wanted.To = &to
	}
	type part struct {
		Projects int    `json:"projects"`
		Next     string `json:"next"`
	}
	for {
		done, err := call[part](ctx, &a.transport, http.MethodPost, path("internal", "restored"), wanted)
		if err != nil {
			return projects, err
		}
		projects, wanted.After = projects+done.Projects, done.Next
		if done.Next == "" {
			return projects, nil
		}
	}
}

// RemovedProject is how many records of a project, such as entries and keys, the server removed or revoked in one
// request.
type RemovedProject struct {
	// Records holds the number of removed records by kind, such as "entries".
	Records map[string]int
	// More reports that the request reached the server's bound for one request. The caller repeats the request to
	// remove the rest.
	More bool
}

// UnmarshalJSON decodes the server's answer. Each number in the answer becomes one of Records, and "more" becomes
// More.
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

// RemoveProject revokes the project's keys, and then removes its data from all services. If a service fails again and
// again, the error has the code [CodeUnavailable] and a message that names the service. The caller repeats
// RemoveProject after such an error, and while the result has More. Repeating RemoveProject does no harm.
func (a *Administrator) RemoveProject(ctx context.Context, projectID string) (RemovedProject, error) {
	return call[RemovedProject](ctx, &a.transport, http.MethodDelete, path("internal", "projects", projectID), nil)
}
