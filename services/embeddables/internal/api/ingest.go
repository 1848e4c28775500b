package api

import (
	"context"
	"fmt"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/ingest"
	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// Writer is the part of the store that ingest uses.
type Writer interface {
	// PutEmbeddables returns how many embeddables were new or changed the stored ones, and how many of these replaced a
	// stored embeddable.
	PutEmbeddables(ctx context.Context, projectID string, embeddables []embeddable.Embeddable) (stored, replaced int, err error)
	// PutVersions returns how many versions were new. PutVersions also returns the indexes, in order, of the versions
	// that differ from the stored version of the same number.
	PutVersions(ctx context.Context, projectID string, versions []embeddable.Version) (stored int, conflicts []int, err error)
}

// AddIngest adds the routes under /internal that store records. A request to a route needs one of the ingest keys.
func AddIngest(rt *httpapi.Router, options ingest.Options, store Writer, p *service.Parts) {
	options.MeterProvider = p.Telemetry.MeterProvider

	rt.Post("/internal/embeddables", p.IngestKeys.Protect(ingest.Handler(embeddableKind(ingest.Counted(store.PutEmbeddables)), options)))
	rt.Post("/internal/embeddable-versions", p.IngestKeys.Protect(ingest.Handler(versionKind(store.PutVersions), options)))
}

// NewDry returns an ingest that checks and counts records, and stores nothing. resource is "embeddables"; each other
// name means versions.
func NewDry(resource string) *ingest.Dry {
	if resource == "embeddables" {
		return ingest.NewDry(embeddableKind(nil), func(r *embeddable.Embeddable) ingest.Identity {
			return ingest.Identity{ID: r.ID}
		})
	}
	return ingest.NewDry(versionKind(nil), func(r *embeddable.Version) ingest.Identity {
		return ingest.Identity{ID: fmt.Sprint(r.Number, " ", r.EmbeddableID), First: true, Other: &conflict}
	})
}

// conflict is the fault of a version that differs from the stored version of the same number.
var conflict = ingest.Fault{
	Code:    ingest.Conflict,
	Message: "The version of this number is stored with another saved_at or json_string, and a version never changes.",
}

// embeddableKind describes the fields of an embeddable to package ingest, in the format of the API. store stores the
// embeddables of one project, and is nil for a dry run.
func embeddableKind(store func(context.Context, string, []embeddable.Embeddable) (ingest.Result, error)) ingest.Kind[embeddable.Embeddable] {
	type e = embeddable.Embeddable
	id := ingest.Identifier()
	return ingest.Kind[e]{
		Resource: "embeddables",
		Fields: []ingest.Field[e]{
			ingest.Text("embeddable_id", id, func(r *e) *string { return &r.ID }),
			ingest.Text("title", ingest.AnyText(), func(r *e) *string { return &r.Title }),
			ingest.Text("group_id", id, func(r *e) *string { return &r.GroupID }),
			ingest.Text("project_id", id, func(r *e) *string { return &r.ProjectID }),
			ingest.Text("json_string_prod", ingest.JSONText(), func(r *e) *string { return &r.Definition }),
		},
		Project: func(r *e) string { return r.ProjectID },
		Store:   store,
	}
}

// versionKind describes the fields of a version to package ingest, in the format of the API, with project_id. put
// stores the versions of one project, and is nil for a dry run.
func versionKind(put func(context.Context, string, []embeddable.Version) (stored int, conflicts []int, err error)) ingest.Kind[embeddable.Version] {
	type v = embeddable.Version
	id := ingest.Identifier()
	return ingest.Kind[v]{
		Resource: "embeddable-versions",
		Fields: []ingest.Field[v]{
			ingest.Text("embeddable_id", id, func(r *v) *string { return &r.EmbeddableID }),
			ingest.Text("project_id", id, func(r *v) *string { return &r.ProjectID }),
			ingest.Int("version_number", 0, embeddable.MaxVersion, func(r *v) *int64 { return &r.Number }),
			ingest.Time("saved_at", func(r *v) *int64 { return &r.SavedAt }),
			ingest.Text("json_string", ingest.JSONText(), func(r *v) *string { return &r.Definition }),
		},
		Project: func(r *v) string { return r.ProjectID },
		Store: func(ctx context.Context, projectID string, versions []v) (ingest.Result, error) {
			stored, conflicts, err := put(ctx, projectID, versions)
			result := ingest.Result{Stored: stored}
			for _, i := range conflicts {
				result.Rejected = append(result.Rejected, ingest.Rejected{Index: i, Fault: conflict})
			}
			return result, err
		},
	}
}
