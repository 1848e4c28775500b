package api

import (
	"context"
	"strconv"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/ingest"
	"github.com/lectern-dev/lectern/shared/service"

	"github.com/lectern-dev/lectern/services/region/internal/project"
	"github.com/lectern-dev/lectern/services/region/internal/zone"
)

// Writer is the part of the store that the routes under /internal use to store and read projects.
type Writer interface {
	// PutProject stores the sent records of one project, in order. PutProject returns how many records were new or
	// changed the stored project, and how many of these replaced the stored project.
	PutProject(ctx context.Context, id string, sent []project.Project) (stored, replaced int, err error)
	// Get returns a stored project. The error is a ProjectNotFound if the project is not stored.
	Get(ctx context.Context, id string) (project.Project, error)
}

// AddProjects adds the routes under /internal that store projects and return a stored project. The routes require a
// key for ingest.
func AddProjects(rt *httpapi.Router, cfg Config, options ingest.Options, store Writer, zones *zone.Table, p *service.Parts) {
	options.MeterProvider = p.Telemetry.MeterProvider
	o := &owner{store: store, zones: zones, now: cfg.clock()}

	rt.Post("/internal/projects", p.IngestKeys.Protect(ingest.Handler(projectKind(ingest.Counted(store.PutProject), zones), options)))
	rt.Get("/internal/projects/{projectId}/settings", p.IngestKeys.Protect(o.getProject))
}

// NewDry returns an [ingest.Dry] for projects. The Dry checks lines and counts their outcomes, but stores nothing.
func NewDry() *ingest.Dry {
	return ingest.NewDry(projectKind(nil, zone.NewTable()), func(r *project.Project) ingest.Identity {
		return ingest.Identity{ID: r.ID}
	})
}

// projectKind describes projects for ingest. Each record is complete, so a region that is null or absent means no
// region. store may be nil for an [ingest.Dry].
func projectKind(store func(context.Context, string, []project.Project) (ingest.Result, error), zones *zone.Table) ingest.Kind[project.Project] {
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
		Store:   store,
	}
}
