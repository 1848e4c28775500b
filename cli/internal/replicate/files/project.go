package files

import (
	"bytes"
	"context"
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
	ExperimentID string  `parquet:"experiment_id,dict"`
	Status       *string `parquet:"status,optional,dict"`
	ChangedAt    int64   `parquet:"changed_at,timestamp(microsecond:utc)"`
	RecordedAt   int64   `parquet:"recorded_at,timestamp(microsecond:utc)"`
}

// putProject replaces the files of the parts of p that are known.
func (d *Destination) putProject(ctx context.Context, m *manifest, p *replicate.Project) (err error) {
	if p == nil {
		return nil
	}
	if p.Embeddables != nil {
		m.Embeddables, err = whole(ctx, d, "embeddables", p.Embeddables, func(e client.EmbeddableWithDefinition) embeddableRow {
			return embeddableRow{e.EmbeddableID, e.Title, e.GroupID, e.ProjectID, e.Definition}
		})
		if err != nil {
			return err
		}
	}
	if p.Versions != nil {
		m.Versions, err = whole(ctx, d, "embeddable_versions", p.Versions, func(v client.EmbeddableVersionWithDefinition) versionRow {
			return versionRow{v.EmbeddableID, v.Number, v.SavedAt.UnixMicro(), v.Definition}
		})
		if err != nil {
			return err
		}
	}
	if p.Experiments != nil {
		m.Experiments, err = whole(ctx, d, "experiments", replicate.Sound(p.Experiments), func(e client.Experiment) experimentRow {
			return experimentRow{
				e.ID, e.FlowID, e.Name, e.Hypothesis, e.ImpactMetrics, e.NoImpactMetrics, e.CreatedAt.UnixMicro(), e.UpdatedAt.UnixMicro(),
				e.Observations, e.Outcome, e.Attachments, e.Variants, e.FlowIDs, e.PausedShowingVariant, e.WinnerVariant, (*string)(e.Status),
			}
		})
		if err != nil {
			return err
		}
	}
	if p.History != nil {
		m.History, err = whole(ctx, d, "experiment_history", replicate.Sound(p.History), func(c replicate.StatusChange) statusRow {
			return statusRow{c.ExperimentID, (*string)(c.Status), c.ChangedAt.UnixMicro(), c.RecordedAt.UnixMicro()}
		})
	}
	return err
}

// whole writes the only file of a kind.
func whole[T, R any](ctx context.Context, d *Destination, kind string, records iter.Seq2[T, error], row func(T) R) ([]file, error) {
	var b bytes.Buffer
	made := file{}
	w := parquetfile.NewWriter(&b, nil, func(*R) *string { return nil })
	for record, err := range records {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", kind, err)
		}
		if err := w.Write([]R{row(record)}); err != nil {
			return nil, err
		}
		made.Rows++
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err := d.save(ctx, kind, &made, b.Bytes())
	return []file{made}, err
}
