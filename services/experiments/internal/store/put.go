package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/shared/postgres/insert"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/experiments/internal/experiment"
)

// putExperiments and putExperiment are one INSERT in the two forms that [insert.Put] requires. The INSERT returns a
// row for each experiment that it stored. The ON CONFLICT of an INSERT has no parameter, because Citus allows none
// there.

const insertExperiments = `
INSERT INTO experiments AS e (project_id, experiment_id, flow_id, name, hypothesis, impact_metrics, no_impact_metrics,
                              created_at, updated_at, observations, outcome, attachments, variants, flow_ids,
                              paused_showing_variant, winner_variant, status, changes, changed)`

// unlessOlder replaces a stored experiment, unless the stored experiment has a later update. With an equal time of
// update, unlessOlder replaces the experiment only if the content differs. A change of the status adds 1 to changes.
const unlessOlder = `
ON CONFLICT (project_id, experiment_id) DO UPDATE
SET flow_id = excluded.flow_id, name = excluded.name, hypothesis = excluded.hypothesis,
    impact_metrics = excluded.impact_metrics, no_impact_metrics = excluded.no_impact_metrics,
    created_at = excluded.created_at, updated_at = excluded.updated_at,
    observations = excluded.observations, outcome = excluded.outcome,
    attachments = excluded.attachments, variants = excluded.variants, flow_ids = excluded.flow_ids,
    paused_showing_variant = excluded.paused_showing_variant, winner_variant = excluded.winner_variant,
    status = excluded.status, changed = excluded.changed,
    changes = e.changes + CASE WHEN excluded.status IS DISTINCT FROM e.status THEN 1 ELSE 0 END
WHERE excluded.updated_at > e.updated_at
   OR excluded.updated_at = e.updated_at
  AND (excluded.flow_id, excluded.name, excluded.hypothesis, excluded.impact_metrics, excluded.no_impact_metrics,
       excluded.created_at, excluded.observations, excluded.outcome, excluded.attachments, excluded.variants,
       excluded.flow_ids, excluded.paused_showing_variant, excluded.winner_variant, excluded.status)
      IS DISTINCT FROM (e.flow_id, e.name, e.hypothesis, e.impact_metrics, e.no_impact_metrics,
       e.created_at, e.observations, e.outcome, e.attachments, e.variants,
       e.flow_ids, e.paused_showing_variant, e.winner_variant, e.status)
RETURNING 1`

const putExperiments = insertExperiments + `
SELECT $1, u.experiment_id, u.flow_id, u.name, u.hypothesis, u.impact_metrics, u.no_impact_metrics,
       u.created_at, u.updated_at, u.observations, u.outcome, u.attachments, u.variants, u.flow_ids,
       u.paused_showing_variant, u.winner_variant, u.status, 1, u.changed
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::timestamptz[],
            $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::bigint[])
     AS u (experiment_id, flow_id, name, hypothesis, impact_metrics, no_impact_metrics, created_at, updated_at,
           observations, outcome, attachments, variants, flow_ids, paused_showing_variant, winner_variant, status,
           changed)
ORDER BY u.experiment_id` + unlessOlder

const putExperiment = insertExperiments + `
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 1, $18)` + unlessOlder

// putStatusChanges records the newest status of each experiment in $2, with the number of the change. A change that is
// recorded already has the same number, so the statement does not record it again.
const putStatusChanges = `
INSERT INTO status_changes (project_id, experiment_id, change, status, changed_at)
SELECT e.project_id, e.experiment_id, e.changes, e.status, e.updated_at
FROM experiments e
WHERE e.project_id = $1 AND e.experiment_id = ANY ($2::text[])
ON CONFLICT (project_id, experiment_id, change) DO NOTHING`

// knownExperiments counts the experiments in $2 that are stored.
const knownExperiments = `
SELECT count(*)
FROM experiments
WHERE project_id = $1 AND experiment_id = ANY($2::text[])`

// Writer stores incoming experiments and the changes of their status. The role of its pool may write.
type Writer struct {
	pool *pgdb.Pool
}

// NewWriter returns a Writer to pool. The pool's role needs SELECT and INSERT, and UPDATE of experiments
// and experiment_changes.
func NewWriter(pool *pgdb.Pool) *Writer { return &Writer{pool: pool} }

var experimentsPut = insert.Put{Arrays: putExperiments, Values: putExperiment, Key: 1}

// PutExperiments stores experiments of one project in one transaction, and records each change of a status. The outcome
// is the same as storing the experiments one by one, and PutExperiments may be repeated. An experiment that is older
// than the stored experiment is not stored.
//
// stored is how many experiments were new or changed a stored experiment, and replaced is how many of these replaced
// one. replaced is exact if no other transaction stores the same experiments meanwhile.
func (w *Writer) PutExperiments(ctx context.Context, projectID string, list []experiment.Experiment) (stored, replaced int, err error) {
	batches := insert.Batches(list, func(e *experiment.Experiment) string { return e.ID })
	err = numbers.InTx(ctx, w.pool, projectID, func(ctx context.Context, tx pgx.Tx, number int64) (int, error) {
		stored = 0
		known, err := insert.Count(ctx, tx, knownExperiments, projectID, ids(batches[0]))
		if err != nil {
			return 0, err
		}
		for _, batch := range batches {
			n, err := experimentsPut.StoredIn(ctx, w.pool, tx, projectID, append(experimentColumnsOf(batch), slices.Repeat([]int64{number}, len(batch)))...)
			if err != nil {
				return 0, err
			}
			if n == 0 {
				continue
			}
			stored += n
			if _, err := tx.Exec(ctx, putStatusChanges, projectID, ids(batch)); err != nil {
				return 0, err
			}
		}
		replaced = insert.Replaced(stored, len(batches[0]), known)
		return stored, nil
	})
	return stored, replaced, err
}

func ids(list []experiment.Experiment) []string {
	return insert.Column(list, func(e *experiment.Experiment) string { return e.ID })
}

// experimentColumnsOf returns the columns of experiments in the order of insertExperiments, without the project
// and the number of their change.
func experimentColumnsOf(list []experiment.Experiment) []any {
	type e = experiment.Experiment
	text := func(of func(*e) *string) []*string { return insert.Column(list, of) }
	time := func(of func(*e) int64) []pgtype.Timestamptz {
		return insert.Column(list, func(r *e) pgtype.Timestamptz { return pgdb.Timestamp(of(r)) })
	}
	return []any{
		ids(list),
		insert.Column(list, func(r *e) string { return r.FlowID }),
		text(func(r *e) *string { return r.Name }),
		text(func(r *e) *string { return r.Hypothesis }),
		text(func(r *e) *string { return array(r.ImpactMetrics) }),
		text(func(r *e) *string { return array(r.NoImpactMetrics) }),
		time(func(r *e) int64 { return r.CreatedAt }),
		time(func(r *e) int64 { return r.UpdatedAt }),
		text(func(r *e) *string { return r.Observations }),
		text(func(r *e) *string { return r.Outcome }),
		text(func(r *e) *string { return r.Attachments }),
		text(func(r *e) *string { return r.Variants }),
		text(func(r *e) *string { return array(r.FlowIDs) }),
		text(func(r *e) *string { return r.PausedShowingVariant }),
		text(func(r *e) *string { return r.WinnerVariant }),
		text(func(r *e) *string { return r.Status }),
	}
}

// array returns texts as a JSON array, which is their form in the database, or nil for nil.
func array(texts []string) *string {
	if texts == nil {
		return nil
	}
	b := []byte{'['}
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendText(b, []byte(text))
	}
	array := string(append(b, ']'))
	return &array
}
