package postgres

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/cli/internal/replicate"
	"github.com/lectern-dev/lectern/client"
)

// part is a table of the project's other records. Its rows are nil if the key may not read them.
type part struct {
	kind  string // of the keys of a [replicate.Table]
	table string
	rows  iter.Seq2[[]any, error]
}

// partsOf returns all tables of p with their rows.
func partsOf(p *replicate.Project) []part {
	return []part{
		{"embeddable", "embeddables", rowsOf(p.Embeddables, func(e client.EmbeddableWithDefinition) []any {
			return []any{e.EmbeddableID, e.Title, e.GroupID, e.ProjectID, e.Definition}
		})},
		{"embeddable_version", "embeddable_versions", rowsOf(p.Versions, func(v client.EmbeddableVersionWithDefinition) []any {
			return []any{v.EmbeddableID, v.Number, v.SavedAt, v.Definition}
		})},
		{"experiment", "experiments", rowsOf(replicate.Sound(p.Experiments), func(e client.Experiment) []any {
			return []any{
				e.ID, e.FlowID, e.Name, e.Hypothesis, e.ImpactMetrics, e.NoImpactMetrics, e.CreatedAt, e.UpdatedAt, e.Observations, e.Outcome,
				e.Attachments, e.Variants, e.FlowIDs, e.PausedShowingVariant, e.WinnerVariant, (*string)(e.Status),
			}
		})},
		{"experiment_status", "experiment_history", rowsOf(replicate.Sound(p.History), func(c replicate.StatusChange) []any {
			return []any{c.ExperimentID, c.Change, (*string)(c.Status), c.ChangedAt, c.RecordedAt}
		})},
	}
}

// rowsOf returns the rows of some records; nil for nil.
func rowsOf[T any](records iter.Seq2[T, error], row func(T) []any) iter.Seq2[[]any, error] {
	if records == nil {
		return nil
	}
	return func(yield func([]any, error) bool) {
		for record, err := range records {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(row(record), nil) {
				return
			}
		}
	}
}

// putProject replaces the tables of the parts of p that are known.
func (d *Destination) putProject(ctx context.Context, tx pgx.Tx, p *replicate.Project) error {
	if p == nil {
		return nil
	}
	for _, part := range partsOf(p) {
		if part.rows == nil {
			continue
		}
		if err := d.replace(ctx, tx, part); err != nil {
			return err
		}
	}
	return nil
}

// replace replaces the rows of a table. It does not hold all of them in memory.
func (d *Destination) replace(ctx context.Context, tx pgx.Tx, p part) error {
	if _, err := tx.Exec(ctx, `DELETE FROM `+pgx.Identifier{d.Schema, p.table}.Sanitize()); err != nil {
		return err
	}
	next, stop := iter.Pull2(p.rows)
	defer stop()
	var failed error // Postgres' error would hide it
	_, err := tx.CopyFrom(ctx, pgx.Identifier{d.Schema, p.table}, names(columnsOf(p.table)), pgx.CopyFromFunc(func() ([]any, error) {
		row, err, ok := next()
		if failed = err; err != nil || !ok {
			return nil, err
		}
		return row(record), nil
	}))
	if failed != nil {
		return fmt.Errorf("read %s: %w", p.table, failed)
	}
	return err
}
