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
	// PutExperiments stores experiments of one project, and may be repeated. PutExperiments returns how many
	// experiments were new or changed a stored experiment, and how many of these replaced a stored experiment.
	PutExperiments(ctx context.Context, projectID string, experiments []experiment.Experiment) (stored, replaced int, err error)
}

// AddIngest adds POST /internal/experiments, which stores experiments and requires a key for ingest.
func AddIngest(rt *httpapi.Router, options ingest.Options, store Writer, p *service.Parts) {
	options.MeterProvider = p.Telemetry.MeterProvider

	rt.Post("/internal/experiments", p.IngestKeys.Protect(ingest.Handler(experimentKind(ingest.Counted(store.PutExperiments)), options)))
}

// NewDry returns an [ingest.Dry] for experiments. The Dry checks lines and counts their outcomes, but stores nothing.
func NewDry() *ingest.Dry {
	return ingest.NewDry(experimentKind(nil), func(r *experiment.Experiment) ingest.Identity {
		return ingest.Identity{ID: r.ID, At: r.UpdatedAt}
	})
}

// experimentKind describes experiments for ingest. A line has the fields of an experiment in answers of the API, and
// also project_id. store may be nil for an [ingest.Dry].
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

// checkIDs returns a fault if the fields id and experimentId of an experiment differ, and otherwise nil.
func checkIDs(e *experiment.Experiment) *ingest.Fault {
	if e.ID != e.ExperimentID {
		return ingest.BadField("experimentId", string(wire.AppendText(nil, []byte(e.ExperimentID))), "the same as id")
	}
	return nil
}
