package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lectern-dev/lectern/cli/internal/parquetfile"
	"github.com/lectern-dev/lectern/cli/internal/replicate"
	"github.com/lectern-dev/lectern/client"
)

type embeddableRow struct {
	EmbeddableID string `parquet:"embeddable_id"`
	Title        string `parquet:"title"`
	GroupID      string `parquet:"group_id,dict"`
	ProjectID    string `parquet:"project_id,dict"`
	Definition   string `parquet:"definition"`
}

type versionRow struct {
	EmbeddableID  string `parquet:"embeddable_id,dict"`
	VersionNumber int64  `parquet:"version_number"`
	SavedAt       int64  `parquet:"saved_at,timestamp(microsecond:utc)"`
	Definition    string `parquet:"definition"`
}

type experimentRow struct {
	ExperimentID         string   `parquet:"experiment_id"`
	FlowID               string   `parquet:"flow_id"`
	Name                 *string  `parquet:"name,optional"`
	Hypothesis           *string  `parquet:"hypothesis,optional"`
	ImpactMetrics        []string `parquet:"impact_metrics,optional,list"`
	NoImpactMetrics      []string `parquet:"no_impact_metrics,optional,list"`
	CreatedAt            int64    `parquet:"created_at,timestamp(microsecond:utc)"`
	UpdatedAt            int64    `parquet:"updated_at,timestamp(microsecond:utc)"`
	Observations         *string  `parquet:"observations,optional"`
	Outcome              *string  `parquet:"outcome,optional"`
	Attachments          *string  `parquet:"attachments,optional"`
	Variants             *string  `parquet:"variants,optional"`
	FlowIDs              []string `parquet:"flow_ids,optional,list"`
	PausedShowingVariant *string  `parquet:"paused_showing_variant,optional"`
	WinnerVariant        *string  `parquet:"winner_variant,optional"`
	Status               *string  `parquet:"status,optional,dict"`
}

type statusRow struct {
	Change       int64   `parquet:"change"`
	ExperimentID string  `parquet:"experiment_id,dict"`
	Status       *string `parquet:"status,optional,dict"`
	ChangedAt    int64   `parquet:"changed_at,timestamp(microsecond:utc)"`
	RecordedAt   int64   `parquet:"recorded_at,timestamp(microsecond:utc)"`
}

// putProject replaces the files of the parts of p that are known.
func (d *Destination) putProject(ctx context.Context, m *manifest, p *replicate.Project) error {
	if p == nil {
		return nil
	}
	return cmp.Or(
		whole(ctx, d, &m.Embeddables, "embeddables", p.Embeddables != nil, p.Embeddables, func(e client.EmbeddableWithDefinition) embeddableRow {
			return embeddableRow{e.EmbeddableID, e.Title, e.GroupID, e.ProjectID, e.Definition}
		}),
		whole(ctx, d, &m.Versions, "embeddable_versions", p.Versions != nil, p.Versions, func(v client.EmbeddableVersionWithDefinition) versionRow {
			return versionRow{v.EmbeddableID, v.Number, v.SavedAt.UnixMicro(), v.Definition}
		}),
		whole(ctx, d, &m.Experiments, "experiments", p.Experiments != nil, replicate.Sound(p.Experiments), func(e client.Experiment) experimentRow {
			return experimentRow{
				e.ID, e.FlowID, e.Name, e.Hypothesis, e.ImpactMetrics, e.NoImpactMetrics, e.CreatedAt.UnixMicro(), e.UpdatedAt.UnixMicro(),
				e.Observations, e.Outcome, e.Attachments, e.Variants, e.FlowIDs, e.PausedShowingVariant, e.WinnerVariant, (*string)(e.Status),
			}
		}),
		whole(ctx, d, &m.History, "experiment_history", p.History != nil, replicate.Sound(p.History), func(c replicate.StatusChange) statusRow {
			return statusRow{c.ExperimentID, (*string)(c.Status), c.ChangedAt.UnixMicro(), c.RecordedAt.UnixMicro()}
		}))
}

// whole replaces the only file of a kind, if its records are known. Else a repair drops a damaged one, so that a sync whose key
// may read them makes it.
func whole[T, R any](ctx context.Context, d *Destination, files *[]file, kind string, known bool, records iter.Seq2[T, error], row func(T) R) error {
	if !known && !d.Repair {
		return nil
	}
	if !known {
		for _, f := range *files {
			if err := eachRows(ctx, d, f, func([]R) error { return nil }); !errors.Is(err, errDamaged) {
				return err
			}
			*files = []file{}
		}
		return nil
	}
	var b bytes.Buffer
	made := file{}
	w := parquetfile.NewWriter[R](&b, nil, nil)
	for record, err := range records {
		if err != nil {
			return fmt.Errorf("read %s: %w", kind, err)
		}
		if err := w.Write([]R{row(record)}); err != nil {
			return err
		}
		made.Rows++
	}
	if err := w.Close(); err != nil {
		return err
	}
	err := d.save(ctx, kind, &made, b.Bytes())
	*files = []file{made}
	return err
}
