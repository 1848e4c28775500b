package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pgrecord"

	"github.com/lectern-dev/lectern/services/experiments/internal/experiment"
)

// Writer stores what comes in, with a pool whose role may write.
type Writer struct {
	pool *pgdb.Pool
}

// NewWriter returns a Writer to pool, whose role needs SELECT and INSERT, and UPDATE of experiments.
func NewWriter(pool *pgdb.Pool) *Writer { return &Writer{pool: pool} }

var experimentsPut = pgrecord.Put{Arrays: putExperiments, Values: putExperiment, Key: 1}

// PutExperiments stores experiments of one project in one transaction and tells how many changed what
// was stored. It has the outcome of storing them one after the other, and records each change of a
// status. It may be repeated.
func (w *Writer) PutExperiments(ctx context.Context, projectID string, list []experiment.Experiment) (stored int, err error) {
	waves := pgrecord.Waves(list, func(e *experiment.Experiment) string { return e.ID })
	err = w.pool.InProjectTx(ctx, projectID, func(ctx context.Context, tx pgx.Tx) error {
		stored = 0
		for _, wave := range waves {
			n, err := experimentsPut.StoredIn(ctx, w.pool, tx, projectID, experimentColumnsOf(wave)...)
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			stored += n
			if _, err := tx.Exec(ctx, putStatusChanges, projectID, ids(wave)); err != nil {
				return err
			}
		}
		return nil
	})
	return stored, err
}

func ids(list []experiment.Experiment) []string {
	return pgrecord.Column(list, func(e *experiment.Experiment) string { return e.ID })
}

func experimentColumnsOf(list []experiment.Experiment) []any {
	type e = experiment.Experiment
	text := func(of func(*e) *string) []*string { return pgrecord.Column(list, of) }
	time := func(of func(*e) int64) []pgtype.Timestamptz {
		return pgrecord.Column(list, func(r *e) pgtype.Timestamptz { return pgdb.Timestamp(of(r)) })
	}
	return []any{
		ids(list),
		pgrecord.Column(list, func(r *e) string { return r.FlowID }),
		text(func(r *e) *string { return r.Name }),
		text(func(r *e) *string { return r.Hypothesis }),
		text(func(r *e) *string { return experiment.Array(r.ImpactMetrics) }),
		text(func(r *e) *string { return experiment.Array(r.NoImpactMetrics) }),
		time(func(r *e) int64 { return r.CreatedAt }),
		time(func(r *e) int64 { return r.UpdatedAt }),
		text(func(r *e) *string { return r.Observations }),
		text(func(r *e) *string { return r.Outcome }),
		text(func(r *e) *string { return r.Attachments }),
		text(func(r *e) *string { return r.Variants }),
		text(func(r *e) *string { return experiment.Array(r.FlowIDs) }),
		text(func(r *e) *string { return r.PausedShowingVariant }),
		text(func(r *e) *string { return r.WinnerVariant }),
		text(func(r *e) *string { return r.Status }),
	}
}
