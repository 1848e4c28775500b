package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/parquetfile"
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
	Change       int64   `parquet:"change"`
	Status       *string `parquet:"status,optional,dict"`
	ChangedAt    int64   `parquet:"changed_at,timestamp(microsecond:utc)"`
	RecordedAt   int64   `parquet:"recorded_at,timestamp(microsecond:utc)"`
}

// list is one kind of the records that have no feed, such as experiments. All records of a kind are in one file.
type list struct {
	copies.Table
	put func() error // replaces the file
}

// lists returns the four kinds of records that have no feed: p has the records, and m the files.
func (d *Destination) lists(ctx context.Context, m *manifest, p *copies.Project) []list {
	return []list{
		listOf(ctx, d, &m.Embeddables, "embeddables", "embeddable", p.Embeddables, p.SomeEmbeddables, func(e client.EmbeddableWithDefinition) embeddableRow {
			return embeddableRow{e.EmbeddableID, e.Title, e.GroupID, e.ProjectID, e.Definition}
		}, func(r embeddableRow) string { return r.EmbeddableID }),
		listOf(ctx, d, &m.Versions, "embeddable_versions", "embeddable_version", p.Versions, p.SomeEmbeddables, func(v client.EmbeddableVersionWithDefinition) versionRow {
			return versionRow{v.EmbeddableID, v.Number, v.SavedAt.UnixMicro(), v.Definition}
		}, func(r versionRow) string { return fmt.Sprintf("%s/%d", r.EmbeddableID, r.VersionNumber) }),
		listOf(ctx, d, &m.Experiments, "experiments", "experiment", p.Experiments, p.SomeExperiments, func(e client.Experiment) experimentRow {
			return experimentRow{
				e.ID, e.FlowID, e.Name, e.Hypothesis, e.ImpactMetrics, e.NoImpactMetrics, e.CreatedAt.UnixMicro(), e.UpdatedAt.UnixMicro(),
				e.Observations, e.Outcome, e.Attachments, e.Variants, e.FlowIDs, e.PausedShowingVariant, e.WinnerVariant, (*string)(e.Status),
			}
		}, func(r experimentRow) string { return r.ExperimentID }),
		listOf(ctx, d, &m.History, "experiment_history", "experiment_status", p.History, p.SomeExperiments, func(c copies.StatusChange) statusRow {
			return statusRow{c.ExperimentID, c.Change, (*string)(c.Status), c.ChangedAt.UnixMicro(), c.RecordedAt.UnixMicro()}
		}, func(r statusRow) string { return fmt.Sprintf("%s/%d", r.ExperimentID, r.Change) }),
	}
}

// putProject writes a new file for each kind of records in p, and names the files in m. A kind that the API key could
// not read keeps its file.
func (d *Destination) putProject(ctx context.Context, m *manifest, p *copies.Project) error {
	if p == nil {
		return nil
	}
	for _, l := range d.lists(ctx, m, p) {
		if err := l.put(); err != nil {
			return err
		}
	}
	return nil
}

// listOf returns the list of one kind of records. name is the folder of the list's file. records is nil if the API key
// may not read the records.
func listOf[T, R any](ctx context.Context, d *Destination, files *[]file, name, kind string, records iter.Seq2[T, error], some bool, row func(T) R, id func(R) string) list {
	asRecord := func(r R) copies.Record { return copies.Record{ID: id(r), Values: r} }
	stored := storedRows[R](ctx, d, *files)
	return list{
		copies.Table{
			Kind: kind, Copy: copies.Records(stored, asRecord),
			Source: copies.Records(records, func(record T) copies.Record { return asRecord(row(record)) }),
		},
		func() error {
			rows := copies.Records(records, row)
			if some {
				rows = merge(stored, rows, id)
			}
			return whole(ctx, d, files, name, rows)
		},
	}
}

// merge returns the stored rows, and in the place of those with the id of a changed row that one. New rows come last.
func merge[R any](stored, changed iter.Seq2[R, error], id func(R) string) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		news := map[string]R{}
		var order []string
		for row, err := range changed {
			if err != nil {
				yield(row, err)
				return
			}
			news[id(row)] = row
			order = append(order, id(row))
		}
		for row, err := range stored {
			if changed, ok := news[id(row)]; ok && err == nil {
				row = changed
				delete(news, id(row))
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
		for _, id := range order {
			if row, ok := news[id]; ok && !yield(row, nil) {
				return
			}
		}
	}
}

// whole replaces the only file of a kind by a file with records. If records is nil, whole keeps the file. A repair
// then drops a damaged file, so that a later sync whose key may read the records writes the file.
func whole[R any](ctx context.Context, d *Destination, files *[]file, kind string, records iter.Seq2[R, error]) error {
	if records == nil && !d.Repair {
		return nil
	}
	if records == nil {
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
	w := parquetfile.NewWriter[R](&b, nil, nil, d.Mask.Names()...)
	for record, err := range records {
		if err != nil {
			return fmt.Errorf("read %s: %w", kind, err)
		}
		if err := w.Write([]R{record}); err != nil {
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
