package api

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
)

// Remover is the part of the store that removes data. A method that fails midway still returns how much it has removed.
type Remover interface {
	// Erase removes an entry for good.
	Erase(ctx context.Context, projectID, entryID string) (change.Removed, error)
	// EraseContact removes all entries of a contact for good, and the entries that an event of the contact names.
	EraseContact(ctx context.Context, projectID, contactID string) (change.Removed, error)
	// Purge removes the entries that were last updated before a time, in Unix microseconds. Purge also removes the
	// events of an id without an entry if all of them are older. One call removes only a part if there is much data. The
	// next call goes on after the id next.
	Purge(ctx context.Context, projectID string, before int64, after string) (r change.Removed, next string, err error)
	// Older returns how much Purge would remove with the same arguments.
	Older(ctx context.Context, projectID string, before int64, after string) (r change.Removed, next string, err error)
	// Project removes the data that the service holds about a project. One call removes only a part if there is much
	// data.
	Project(ctx context.Context, projectID string) (change.Removed, error)
	// Restored records that projects have lost all numbers after the number to, because the database was restored. One
	// call passes some projects after the id after. next is the id for the next call, or empty.
	Restored(ctx context.Context, to int64, after string) (projects int, next string, err error)
}

// removal has the handlers of the requests by which administrators remove data.
type removal struct {
	store Remover
	hint  func(projectID string)
}

// AddRemoval adds the routes under /internal by which administrators remove data. The handlers call hint with the
// project after each removal, even if the removal fails. A dry run calls no hint.
func AddRemoval(rt *httpapi.Router, store Remover, hint func(projectID string), p *service.Parts) {
	m := &removal{store: store, hint: hint}

	rt.Handle("/internal/projects/{projectId}/entries/{entryId}", map[string]http.Handler{
		http.MethodDelete: p.Removal("entry.erase", m.one("entryId", store.Erase)),
	})
	rt.Handle("/internal/projects/{projectId}/contacts/{contactId}", map[string]http.Handler{
		http.MethodDelete: p.Removal("contact.erase", m.one("contactId", store.EraseContact)),
	})
	rt.Post("/internal/projects/{projectId}/purge", p.Removal("entries.purge", m.purge))
	rt.Post("/internal/restored", p.Removal("history.lose", m.restored))
	service.AddProjectRemoval(rt, p, func(ctx context.Context, projectID string) (change.Removed, error) {
		defer hint(projectID)
		return store.Project(ctx, projectID)
	})
}

// one returns a handler that calls erase with the project and with the id in the path variable called variable. After
// erase, the handler calls m.hint with the project, even if erase failed.
func (m *removal) one(variable string, erase func(ctx context.Context, projectID, id string) (change.Removed, error)) func(http.ResponseWriter, *http.Request) (any, error) {
	return func(_ http.ResponseWriter, r *http.Request) (any, error) {
		project, err := httpapi.PathIdentifier(r, "projectId")
		if err != nil {
			return nil, err
		}
		id, err := httpapi.PathIdentifier(r, variable)
		if err != nil {
			return nil, err
		}
		if err := httpapi.ParseQuery(r).Err(); err != nil {
			return nil, err
		}
		defer m.hint(project)
		return erase(r.Context(), project, id)
	}
}

// purge removes the data that is older than the time in the request, and then calls m.hint with the project. In a dry
// run, purge only counts that data.
func (m *removal) purge(w http.ResponseWriter, r *http.Request) (any, error) {
	project, err := httpapi.PathIdentifier(r, "projectId")
	if err != nil {
		return nil, err
	}
	if err := httpapi.ParseQuery(r).Err(); err != nil {
		return nil, err
	}
	before, after, dryRun, err := readPurge(w, r, project)
	if err != nil {
		return nil, err
	}
	a := purged{DryRun: dryRun}
	next, do := "", m.store.Older
	if !dryRun {
		defer m.hint(project)
		do = m.store.Purge
	}
	a.Removed, next, err = do(r.Context(), project, before, after)
	if a.More {
		a.Cursor = purgeOf(project, before).Cursor(lists.Position{ID: next})
		// Clients of version 0.1.0 repeat a purge without a cursor, and would not end if nothing was removed.
		a.More = dryRun || after != "" || a.Entries+a.Events > 0
	}
	return a, err
}

// purged is the answer to a purge: how much was removed, or would be removed in a dry run.
type purged struct {
	change.Removed
	DryRun bool   `json:"dry_run,omitzero"`
	Cursor string `json:"cursor,omitzero"`
}

// LogValue returns the counts alone, because a cursor has the id of an entry.
func (p purged) LogValue() slog.Value { return slog.AnyValue(p.Removed) }

// purgeOf returns the binding of the cursors of a purge.
func purgeOf(project string, before int64) httpapi.Binding {
	return httpapi.Binding{Project: project, List: "purge", Filters: map[string]string{"updated_before": strconv.FormatInt(before, 10)}}
}

// readPurge reads the body of a purge: the time updated_before, in Unix microseconds, the id in the cursor, and dry_run,
// which is false by default. readPurge refuses a time in the future.
func readPurge(w http.ResponseWriter, r *http.Request, project string) (before int64, after string, dryRun bool, err error) {
	const allowed = `{"updated_before": "2025-01-31T00:00:00Z", "cursor": "…", "dry_run": true}, of which cursor and dry_run may be left out`
	var fields struct {
		UpdatedBefore jsontext.Value `json:"updated_before"`
		Cursor        jsontext.Value `json:"cursor"`
		DryRun        jsontext.Value `json:"dry_run"`
	}
	if err := httpapi.ReadJSON(w, r, &fields, allowed); err != nil {
		return 0, "", false, err
	}
	if !httpapi.Given(fields.UpdatedBefore) {
		return 0, "", false, httpapi.InvalidBody(`has no "updated_before"`, allowed)
	}
	if before, err = readPast("updated_before", fields.UpdatedBefore); err != nil {
		return 0, "", false, err
	}
	if httpapi.Given(fields.Cursor) {
		text, _ := httpapi.JSONText(fields.Cursor)
		p, ok := purgeOf(project, before).Position(text)
		if !ok {
			return 0, "", false, httpapi.InvalidField("cursor", fields.Cursor.String(), "the cursor of the answer before, with the same project and updated_before")
		}
		after = p.ID
	}
	dryRun, err = httpapi.JSONBool("dry_run", fields.DryRun)
	return before, after, dryRun, err
}

// restored is the answer to a request to record lost history: how many projects it passed, and the id for the next
// request.
type restored struct {
	Projects int     `json:"projects"`
	Next     *string `json:"next"`
}

// restored records that projects have lost history, because the database was restored.
func (m *removal) restored(w http.ResponseWriter, r *http.Request) (any, error) {
	const allowed = `{"to": "2025-01-31T00:00:00Z", "after": "pr_1"}, of which both may be left out`
	var fields struct {
		To    jsontext.Value `json:"to"`
		After jsontext.Value `json:"after"`
	}
	if err := httpapi.ParseQuery(r).Err(); err != nil {
		return nil, err
	}
	if err := httpapi.ReadJSON(w, r, &fields, allowed); err != nil {
		return nil, err
	}
	to, after := int64(math.MaxInt64), ""
	if httpapi.Given(fields.To) {
		var err error
		if to, err = readPast("to", fields.To); err != nil {
			return nil, err
		}
		to = max(to, 0) // the beginning of the feed is never lost
	}
	if httpapi.Given(fields.After) {
		var ok bool
		if after, ok = httpapi.JSONText(fields.After); !ok || after != "" && !wire.ValidIdentifier(after) {
			return nil, httpapi.InvalidField("after", fields.After.String(), "the id in next of the answer before")
		}
	}
	var done restored
	projects, next, err := m.store.Restored(r.Context(), to, after)
	done.Projects = projects
	if next != "" {
		done.Next = &next
	}
	return done, err
}

// readPast reads a time from the field called name, in Unix microseconds. readPast refuses a time in the future.
func readPast(name string, value jsontext.Value) (int64, error) {
	text, ok := httpapi.JSONText(value)
	at, err := wire.ParseTime(text)
	if !ok || err != nil || at > time.Now().UnixMicro() {
		return 0, httpapi.InvalidField(name, value.String(), "a date and time in the past, such as 2025-01-31T00:00:00Z")
	}
	return at, nil
}
