package store

import (
	"context"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pgremove"

	"github.com/lectern-dev/lectern/services/experiments/internal/experiment"
)

// Each statement removes the project's first rows, as [pgremove.Project] requires.

const removeExperiments = `
DELETE FROM experiments
WHERE project_id = $1 AND experiment_id <= (
    SELECT w.experiment_id
    FROM (SELECT experiment_id FROM experiments WHERE project_id = $1 ORDER BY experiment_id LIMIT $2) w
    ORDER BY w.experiment_id DESC
    LIMIT 1)
RETURNING 1`

const removeStatusChanges = `
DELETE FROM status_changes
WHERE project_id = $1 AND experiment_id <= (
    SELECT w.experiment_id
    FROM (SELECT experiment_id FROM status_changes WHERE project_id = $1 ORDER BY experiment_id LIMIT $2) w
    ORDER BY w.experiment_id DESC
    LIMIT 1)
RETURNING 1`

// Remover removes records, with a pool whose role may delete.
type Remover struct {
	pool *pgdb.Pool
}

// NewRemover returns a Remover over pool. The pool's role needs SELECT and DELETE.
func NewRemover(pool *pgdb.Pool) *Remover { return &Remover{pool: pool} }

// Project removes all experiments of a project with the changes of their status, or a part if there are many. Its
// result is right even with an error. It can be repeated.
func (m *Remover) Project(ctx context.Context, projectID string) (r experiment.Removed, err error) {
	n, more, err := pgremove.Project(ctx, m.pool, projectID, removeExperiments, removeStatusChanges)
	return experiment.Removed{Experiments: n[0], StatusChanges: n[1], More: more}, err
}
