package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// unreferenced selects the definitions to which no embeddable and no version of the project refers.
const unreferenced = `
SELECT d.definition_hash
FROM definitions d
WHERE d.project_id = $1 AND d.part = 0
  AND NOT EXISTS (SELECT FROM embeddables e WHERE e.project_id = $1 AND e.definition_hash = d.definition_hash)
  AND NOT EXISTS (SELECT FROM versions v WHERE v.project_id = $1 AND v.definition_hash = d.definition_hash)`

const countUnreferenced = `SELECT count(*) FROM (` + unreferenced + `) w`

const removeUnreferenced = `
DELETE FROM definitions
WHERE project_id = $1 AND definition_hash IN (` + unreferenced + `
ORDER BY d.definition_hash
LIMIT $2)
RETURNING part`

const (
	// purgedAtOnce is how many definitions one transaction of a purge removes at most. A definition may have megabytes.
	purgedAtOnce = 100

	// purgesByRequest is how many transactions one call of [Remover.PurgeDefinitions] runs at most.
	purgesByRequest = 20
)

// PurgeDefinitions removes the definitions to which no embeddable and no version of the project refers. If there are
// many, PurgeDefinitions removes a part and sets More. The count is right even with an error. The caller can repeat
// PurgeDefinitions. A reader in the middle of a long definition that is removed gets an error.
//
// Each transaction holds the lock of the project's changes, so that nothing that ingest stores meanwhile refers to a
// removed definition. Ingest of version 0.1.0 takes no such lock.
func (m *Remover) PurgeDefinitions(ctx context.Context, projectID string) (r embeddable.PurgedDefinitions, err error) {
	for range purgesByRequest {
		removed := 0
		err := numbers.InTx(ctx, m.pool, projectID, func(ctx context.Context, tx pgx.Tx, _ int64) (int, error) {
			rows, err := tx.Query(ctx, removeUnreferenced, projectID, purgedAtOnce)
			if err != nil {
				return 0, err
			}
			removed = 0
			var part int
			_, err = pgx.ForEachRow(rows, []any{&part}, func() error {
				if part == 0 {
					removed++
				}
				return nil
			})
			return 0, err // no list shows a change
		})
		if err != nil {
			return r, err
		}
		if r.Definitions += removed; removed < purgedAtOnce {
			return r, nil
		}
	}
	r.More = true
	return r, nil
}

// UnreferencedDefinitions returns how many definitions PurgeDefinitions would remove now.
func (m *Remover) UnreferencedDefinitions(ctx context.Context, projectID string) (r embeddable.PurgedDefinitions, err error) {
	err = m.pool.QueryRow(ctx, []any{&r.Definitions}, countUnreferenced, projectID)
	return r, err
}
