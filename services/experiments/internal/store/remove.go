package store

import (
	"context"

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/postgres/remove"

	"github.com/lectern-dev/lectern/services/experiments/internal/experiment"
)

// Remover removes experiments of projects. The role of its pool may delete.
type Remover struct {
	pool *pgdb.Pool
}

// NewRemover returns a Remover over pool. The pool's role needs SELECT and DELETE.
func NewRemover(pool *pgdb.Pool) *Remover { return &Remover{pool: pool} }

// Project removes the experiments of a project with the changes of their status. If the project has many records, one
// call removes only a part, and More in the result is true. The result counts the removed records, even if there is
// an error. Project can be repeated.
func (m *Remover) Project(ctx context.Context, projectID string) (r experiment.Removed, err error) {
	n, more, err := remove.Project(ctx, m.pool, projectID,
		remove.Table{Name: "experiments", Key: "experiment_id"}, remove.Table{Name: "status_changes", Key: "experiment_id"}, remove.Table{Name: "experiment_changes", Key: "number"})
	return experiment.Removed{Experiments: n[0], StatusChanges: n[1], More: more}, err
}
