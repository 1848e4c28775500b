package api

import (
	"context"
	"math"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/ingest"
	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
	"github.com/lectern-dev/lectern/services/entries/internal/entry"
	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// Writer is the part of the store that ingest uses. The methods of a Writer store records of one project, and may be
// repeated.
type Writer interface {
	PutEntries(ctx context.Context, projectID string, entries []entry.Entry) (change.Stored, error)
	PutEvents(ctx context.Context, projectID string, events []entry.Event) (change.Stored, error)
}

// stored makes the Store function of an [ingest.Kind] from put. The function calls hint with the project if put stored
// something, and rejects the records of erased entries.
func stored[T any](put func(context.Context, string, []T) (change.Stored, error), hint func(projectID string)) func(context.Context, string, []T) (ingest.Result, error) {
	return func(ctx context.Context, projectID string, records []T) (ingest.Result, error) {
		s, err := put(ctx, projectID, records)
		if err != nil {
			return ingest.Result{}, err
		}
		if s.Count > 0 {
			hint(projectID)
		}
		result := ingest.Result{Stored: s.Count, Changed: s.Replaced}
		for _, i := range s.Erased {
			result.Rejected = append(result.Rejected, ingest.Rejected{Index: i, Fault: ingest.Fault{
				Code: ingest.Erased, Message: "The entry was erased. Its id takes no more data.",
			}})
		}
		return result, nil
	}
}

// AddIngest adds POST /internal/entries and POST /internal/events, which store records. Both handlers require a key for
// ingest, and call hint with the project after each batch that changes something.
func AddIngest(rt *httpapi.Router, options ingest.Options, store Writer, hint func(projectID string), p *service.Parts) {
	options.MeterProvider = p.Telemetry.MeterProvider

	rt.Post("/internal/entries", p.IngestKeys.Protect(ingest.Handler(entryKind(stored(store.PutEntries, hint)), options)))
	rt.Post("/internal/events", p.IngestKeys.Protect(ingest.Handler(eventKind(stored(store.PutEvents, hint)), options)))
}

// NewDry returns an [ingest.Dry] for entries if resource is "entries", and else for events. The Dry checks lines and
// counts their outcomes, but stores nothing.
func NewDry(resource string) *ingest.Dry {
	if resource == "entries" {
		return ingest.NewDry(entryKind(nil), func(r *entry.Entry) ingest.Identity {
			return ingest.Identity{ID: r.EntryID, At: r.UpdatedAt}
		})
	}
	return ingest.NewDry(eventKind(nil), func(r *entry.Event) ingest.Identity {
		key := r.Key()
		return ingest.Identity{ID: string(key[:]), First: true}
	})
}

// entryKind describes entries for ingest. A line has the fields of an entry in answers of the API. store may be nil
// for an [ingest.Dry].
func entryKind(store func(context.Context, string, []entry.Entry) (ingest.Result, error)) ingest.Kind[entry.Entry] {
	type e = entry.Entry
	id := ingest.Identifier()
	return ingest.Kind[e]{
		Resource: "entries",
		Fields: []ingest.Field[e]{
			ingest.Text("entry_id", id, func(r *e) *string { return &r.EntryID }),
			ingest.Text("group_id", id, func(r *e) *string { return &r.GroupID }),
			ingest.Text("project_id", id, func(r *e) *string { return &r.ProjectID }),
			ingest.Text("embeddable_id", id, func(r *e) *string { return &r.EmbeddableID }),
			ingest.Text("contact_id", id, func(r *e) *string { return &r.ContactID }),
			ingest.Time("created_at", func(r *e) *int64 { return &r.CreatedAt }),
			ingest.Time("updated_at", func(r *e) *int64 { return &r.UpdatedAt }),
			ingest.Text("entry_data", ingest.JSONText(), func(r *e) *string { return &r.Data }),
		},
		Project: func(r *e) string { return r.ProjectID },
		Store:   store,
	}
}

// eventKind describes events for ingest. A line has the fields of an event in answers of the API, and also event_id
// and url. store may be nil for an [ingest.Dry].
func eventKind(store func(context.Context, string, []entry.Event) (ingest.Result, error)) ingest.Kind[entry.Event] {
	type e = entry.Event
	id, text := ingest.Identifier(), ingest.AnyText()
	number := func(name string, at func(*e) **int64) ingest.Field[e] {
		return ingest.NullInt(name, math.MinInt64, math.MaxInt64, at)
	}
	return ingest.Kind[e]{
		Resource: "events",
		Fields: []ingest.Field[e]{
			ingest.Text("entry_id", id, func(r *e) *string { return &r.EntryID }),
			ingest.Text("contact_id", id, func(r *e) *string { return &r.ContactID }),
			ingest.Text("project_id", id, func(r *e) *string { return &r.ProjectID }),
			ingest.Text("group_id", id, func(r *e) *string { return &r.GroupID }),
			ingest.Text("embeddable_id", id, func(r *e) *string { return &r.EmbeddableID }),
			ingest.NullInt("embeddable_version_number", insight.NoVersion+1, math.MaxInt64, func(r *e) **int64 { return &r.Version }),
			ingest.Time("timestamp", func(r *e) *int64 { return &r.Timestamp }),
			ingest.NullText("page_id", text, func(r *e) **string { return &r.PageID }),
			ingest.NullText("page_key", text, func(r *e) **string { return &r.PageKey }),
			number("page_index", func(r *e) **int64 { return &r.PageIndex }),
			ingest.NullText("max_page_id", text, func(r *e) **string { return &r.MaxPageID }),
			ingest.NullText("max_page_key", text, func(r *e) **string { return &r.MaxPageKey }),
			number("max_page_index", func(r *e) **int64 { return &r.MaxPageIndex }),
			number("total_pages", func(r *e) **int64 { return &r.TotalPages }),
			ingest.Text("event_type", id, func(r *e) *string { return &r.EventType }),
			ingest.NullText("view_type", text, func(r *e) **string { return &r.ViewType }),
			ingest.NullText("custom_event_name", text, func(r *e) **string { return &r.CustomEventName }),
			ingest.NullText("custom_event_props", ingest.JSONText(), func(r *e) **string { return &r.CustomEventProps }),
			ingest.NullText("url", text, func(r *e) **string { return &r.URL }),
			ingest.NullText("event_id", id, func(r *e) **string { return &r.EventID }),
		},
		Check:   checkPageView,
		Project: func(r *e) string { return r.ProjectID },
		Store:   store,
	}
}

// checkPageView returns the fault of a page view without page_id, page_key or page_index, which the API never returns
// as null. checkPageView returns nil for a valid page view and for any other event.
func checkPageView(e *entry.Event) *ingest.Fault {
	if e.EventType != entry.PageViewed {
		return nil
	}
	switch {
	case e.PageID == nil:
		return ingest.Missing("page_id")
	case e.PageKey == nil:
		return ingest.Missing("page_key")
	case e.PageIndex == nil:
		return ingest.Missing("page_index")
	}
	return nil
}
