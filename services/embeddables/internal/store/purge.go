package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// unreferenced selects the definitions to which no embeddable and no version of the project refers. Postgres reads each
// table once for EXCEPT. For NOT EXISTS it may read the tables for each definition, if it has no statistics.
const unreferenced = `
SELECT definition_hash FROM definitions WHERE project_id = $1 AND part = 0
EXCEPT SELECT definition_hash FROM embeddables WHERE project_id = $1
EXCEPT SELECT definition_hash FROM versions WHERE project_id = $1`

const countUnreferenced = `SELECT count(*) FROM (` + unreferenced + `) w`

const someUnreferenced = unreferenced + `
ORDER BY definition_hash
LIMIT $2`

const removeDefinitions = `
DELETE FROM definitions
WHERE project_id = $1 AND definition_hash = ANY($2::bytea[])`

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
	// A project without such definitions, or without anything, is not locked.
	if due, err := m.UnreferencedDefinitions(ctx, projectID); err != nil || due.Definitions == 0 {
		return r, err
	}
	for range purgesByRequest {
		removed := 0
		err := numbers.InTx(ctx, m.pool, projectID, func(ctx context.Context, tx pgx.Tx, _ int64) (int, error) {
			rows, err := tx.Query(ctx, someUnreferenced, projectID, purgedAtOnce)
			if err != nil {
				return 0, err
			}
			hashes, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
			if removed = len(hashes); err == nil && removed > 0 {
				_, err = tx.Exec(ctx, removeDefinitions, projectID, hashes)
			}
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
