package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// A transaction takes its numbers before it reads or writes anything else of the project. The UPDATE locks the
// project's row until the transaction ends. So the next transaction sees all changes of this one, and takes greater
// numbers.

// takeNumbers takes $2 numbers and returns the last of them. The first is at least the time in microseconds.
const takeNumbers = `
UPDATE project_changes
SET last_seq = greatest(last_seq + 1, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) + $2::bigint - 1
WHERE project_id = $1
RETURNING last_seq`

// addCounter adds the row of a project that has none.
const addCounter = `
INSERT INTO project_changes (project_id, last_seq)
VALUES ($1, 0)
ON CONFLICT (project_id) DO NOTHING`

// takeSeq takes n numbers of a project and returns the first. It waits for open transactions that have taken numbers
// of the project.
func takeSeq(ctx context.Context, tx pgx.Tx, projectID string, n int) (first int64, err error) {
	var last int64
	err = tx.QueryRow(ctx, takeNumbers, projectID, n).Scan(&last)
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err = tx.Exec(ctx, addCounter, projectID); err != nil {
			return 0, err
		}
		err = tx.QueryRow(ctx, takeNumbers, projectID, n).Scan(&last)
	}
	return last - int64(n) + 1, err
}
