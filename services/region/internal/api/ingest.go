package api

import (
	"context"
	"strconv"

	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/ingest"
	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/region/internal/project"
	"github.com/lectern-dev/lectern/services/region/internal/zone"
)

// Writer is what the ingest needs of the store. It tells how much of what was sent changed what was
// stored.
type Writer interface {
	PutProject(ctx context.Context, id string, sent []project.Project) (stored int, err error)
}

// InternalRoutes lists every route under /internal of the service.
func InternalRoutes(options ingest.Options, store Writer, zones *zone.Table, p *service.Parts) *httpapi.Router {
	options.MeterProvider = p.Telemetry.MeterProvider

	rt := httpapi.NewRouter()
	rt.Post("/internal/projects", p.IngestKeys.Protect(ingest.Handler(projectKind(store, zones), options)))
	return rt
}

// projectKind takes projects: a full record each time, so that a region that is null or left out is
// no region.
func projectKind(store Writer, zones *zone.Table) ingest.Kind[project.Project] {
	type p = project.Project
	return ingest.Kind[p]{
		Resource: "projects",
		Fields: []ingest.Field[p]{
			ingest.Text("id", ingest.Identifier(), func(r *p) *string { return &r.ID }),
			ingest.Text("title", ingest.AnyText(), func(r *p) *string { return &r.Title }),
			ingest.NullText("region", ingest.AnyText(), func(r *p) **string { return &r.Region }),
		},
		Check: func(r *p) *ingest.Fault {
			if r.Region == nil {
				return nil
			}
			if _, err := zones.Find(*r.Region); err != nil {
				return ingest.BadField("region", strconv.Quote(*r.Region), "a zone of the tz database such as Europe/Berlin, or null")
			}
			return nil
		},
		Project: func(r *p) string { return r.ID },
		Store: func(ctx context.Context, id string, sent []p) (ingest.Result, error) {
			stored, err := store.PutProject(ctx, id, sent)
			return ingest.Result{Stored: stored}, err
		},
	}
}
