package postgres

import (
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/cli/internal/replicate"
	"github.com/lectern-dev/lectern/client"
)

// putProject replaces the tables of the parts of p that are known.
func (d *Destination) putProject(ctx context.Context, tx pgx.Tx, p *replicate.Project) error {
	if p == nil {
		return nil
	}
	if p.Embeddables != nil {
		err := replace(ctx, tx, d.Schema, "embeddables", embeddableColumns, p.Embeddables, func(e client.EmbeddableWithDefinition) []any {
			return []any{e.EmbeddableID, e.Title, e.GroupID, e.ProjectID, e.Definition}
		})
		if err != nil {
			return err
		}
	}
	if p.Versions != nil {
		err := replace(ctx, tx, d.Schema, "embeddable_versions", versionColumns, p.Versions, func(v client.EmbeddableVersionWithDefinition) []any {
			return []any{v.EmbeddableID, v.Number, v.SavedAt, v.Definition}
		})
		if err != nil {
			return err
		}
	}
	if p.Experiments != nil {
		err := replace(ctx, tx, d.Schema, "experiments", experimentColumns, replicate.Sound(p.Experiments), func(e client.Experiment) []any {
			return []any{
				e.ID, e.FlowID, e.Name, e.Hypothesis, e.ImpactMetrics, e.NoImpactMetrics, e.CreatedAt, e.UpdatedAt, e.Observations, e.Outcome,
				e.Attachments, e.Variants, e.FlowIDs, e.PausedShowingVariant, e.WinnerVariant, (*string)(e.Status),
			}
		})
		if err != nil {
			return err
		}
	}
	if p.History == nil {
		return nil
	}
	return replace(ctx, tx, d.Schema, "experiment_history", historyColumns, replicate.Sound(p.History), func(c replicate.StatusChange) []any {
		return []any{c.ExperimentID, (*string)(c.Status), c.ChangedAt, c.RecordedAt}
	})
}

// replace replaces the rows of a table by those of records. It does not hold all of them in memory.
func replace[T any](ctx context.Context, tx pgx.Tx, schema, table string, columns []column, records iter.Seq2[T, error], row func(T) []any) error {
	if _, err := tx.Exec(ctx, `DELETE FROM `+pgx.Identifier{schema, table}.Sanitize()); err != nil {
		return err
	}
	next, stop := iter.Pull2(records)
	defer stop()
	var failed error // Postgres' error would hide it
	_, err := tx.CopyFrom(ctx, pgx.Identifier{schema, table}, names(columns), pgx.CopyFromFunc(func() ([]any, error) {
		record, err, ok := next()
		if failed = err; err != nil || !ok {
			return nil, err
		}
		return row(record), nil
	}))
	if failed != nil {
		return fmt.Errorf("read %s: %w", table, failed)
	}
	return err
}
