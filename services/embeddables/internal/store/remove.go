package store

import (
	"context"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pgremove"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// Each statement removes the project's first rows, as [pgremove.Project] requires.

const removeEmbeddables = `
DELETE FROM embeddables
WHERE project_id = $1 AND embeddable_id <= (
    SELECT w.embeddable_id
    FROM (SELECT embeddable_id FROM embeddables WHERE project_id = $1 ORDER BY embeddable_id LIMIT $2) w
    ORDER BY w.embeddable_id DESC
    LIMIT 1)
RETURNING 1`

const removeVersions = `
DELETE FROM versions
WHERE project_id = $1 AND embeddable_id <= (
    SELECT w.embeddable_id
    FROM (SELECT embeddable_id FROM versions WHERE project_id = $1 ORDER BY embeddable_id LIMIT $2) w
    ORDER BY w.embeddable_id DESC
    LIMIT 1)
RETURNING 1`

const removeDefinitions = `
DELETE FROM definitions
WHERE project_id = $1 AND definition_hash <= (
    SELECT w.definition_hash
    FROM (SELECT definition_hash FROM definitions WHERE project_id = $1 ORDER BY definition_hash LIMIT $2) w
    ORDER BY w.definition_hash DESC
    LIMIT 1)
RETURNING 1`

// Remover removes records, with a pool whose role may delete.
type Remover struct {
	pool *pgdb.Pool
}

// NewRemover returns a Remover over pool. The pool's role needs SELECT and DELETE.
func NewRemover(pool *pgdb.Pool) *Remover { return &Remover{pool: pool} }

// Project removes all embeddables of a project with their versions and definitions, or a part if there are many. Its
// result is right even with an error. It can be repeated.
func (m *Remover) Project(ctx context.Context, projectID string) (r embeddable.Removed, err error) {
	n, more, err := pgremove.Project(ctx, m.pool, projectID, removeEmbeddables, removeVersions, removeDefinitions)
	return embeddable.Removed{Embeddables: n[0], Versions: n[1], Definitions: n[2], More: more}, err
}
