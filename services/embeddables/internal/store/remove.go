package store

import (
	"context"

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/postgres/remove"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// Remover removes records, with a pool whose role may delete.
type Remover struct {
	pool *pgdb.Pool
}

// NewRemover returns a Remover over pool. The pool's role needs SELECT and DELETE, and INSERT and UPDATE of
// embeddable_changes.
func NewRemover(pool *pgdb.Pool) *Remover { return &Remover{pool: pool} }

// Project removes all embeddables of a project with their versions, and then the definitions to which nothing refers. If
// there are many, Project removes a part and sets More. The counts are right even with an error. The caller can repeat Project.
func (m *Remover) Project(ctx context.Context, projectID string) (r embeddable.Removed, err error) {
	n, more, err := remove.Project(ctx, m.pool, projectID, remove.Table{Name: "embeddables", Key: "embeddable_id"}, remove.Table{Name: "versions", Key: "embeddable_id"})
	r = embeddable.Removed{Embeddables: n[0], Versions: n[1], More: more}
	if err != nil || more {
		return r, err
	}
	definitions, err := m.PurgeDefinitions(ctx, projectID)
	r.Definitions, r.More = definitions.Definitions, definitions.More
	if err != nil || r.More {
		return r, err
	}
	_, r.More, err = remove.Project(ctx, m.pool, projectID, remove.Table{Name: "embeddable_changes", Key: "number"})
	return r, err
}
