package api

import (
	"context"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/ingest"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/experiments/internal/experiment"
)

// Writer is the part of the store that ingest uses.
type Writer interface {
	// PutExperiments returns how many experiments were new or changed the stored ones, and how many of these replaced one.
	PutExperiments(ctx context.Context, projectID string, experiments []experiment.Experiment) (stored, replaced int, err error)
}

// AddIngest adds the route under /internal that stores experiments.
func AddIngest(rt *httpapi.Router, options ingest.Options, store Writer, p *service.Parts) {
	options.MeterProvider = p.Telemetry.MeterProvider

	rt.Post("/internal/experiments", p.IngestKeys.Protect(ingest.Handler(experimentKind(ingest.Counted(store.PutExperiments)), options)))
}

// NewDry returns the ingest of experiments that stores nothing.
func NewDry() *ingest.Dry {
	return ingest.NewDry(experimentKind(nil), func(r *experiment.Experiment) ingest.Identity {
		return ingest.Identity{ID: r.ID, At: r.UpdatedAt}
	})
}

// experimentKind reads experiments in the format in which the API returns them, with project_id.
func experimentKind(store func(context.Context, string, []experiment.Experiment) (ingest.Result, error)) ingest.Kind[experiment.Experiment] {
	type e = experiment.Experiment
	id, text := ingest.Identifier(), ingest.AnyText()
	return ingest.Kind[e]{
		Resource: "experiments",
		Fields: []ingest.Field[e]{
			ingest.Text("project_id", id, func(r *e) *string { return &r.ProjectID }),
			ingest.Text("id", id, func(r *e) *string { return &r.ID }),
			ingest.Text("experimentId", id, func(r *e) *string { return &r.ExperimentID }),
			ingest.Text("flowId", id, func(r *e) *string { return &r.FlowID }),
			ingest.NullText("name", text, func(r *e) **string { return &r.Name }),
			ingest.NullText("hypothesis", text, func(r *e) **string { return &r.Hypothesis }),
			ingest.NullTexts("impact_metrics", text, func(r *e) *[]string { return &r.ImpactMetrics }),
			ingest.NullTexts("no_impact_metrics", text, func(r *e) *[]string { return &r.NoImpactMetrics }),
			ingest.Time("created_at", func(r *e) *int64 { return &r.CreatedAt }),
			ingest.Time("updated_at", func(r *e) *int64 { return &r.UpdatedAt }),
			ingest.NullText("observations", text, func(r *e) **string { return &r.Observations }),
			ingest.NullText("outcome", text, func(r *e) **string { return &r.Outcome }),
			ingest.NullText("attachments", ingest.JSONArrayText(), func(r *e) **string { return &r.Attachments }),
			ingest.NullText("variants", ingest.JSONObjectText(), func(r *e) **string { return &r.Variants }),
			ingest.NullTexts("flow_ids", text, func(r *e) *[]string { return &r.FlowIDs }),
			ingest.NullText("paused_showing_variant", text, func(r *e) **string { return &r.PausedShowingVariant }),
			ingest.NullText("winner_variant", text, func(r *e) **string { return &r.WinnerVariant }),
			ingest.NullText("status", ingest.OneOf(experiment.Statuses()...), func(r *e) **string { return &r.Status }),
		},
		Check:   checkIDs,
		Project: func(r *e) string { return r.ProjectID },
		Store:   store,
	}
}

// checkIDs checks that both ids of an experiment are equal.
func checkIDs(e *experiment.Experiment) *ingest.Fault {
	if e.ID != e.ExperimentID {
		return ingest.BadField("experimentId", string(wire.AppendText(nil, []byte(e.ExperimentID))), "the same as id")
	}
	return nil
}
