package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/insert"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
)

// numberedTx is a transaction that has taken numbers of a project before it reads or writes anything else of it. Only it
// writes entries, events and removals. The UPDATE of takeNumbers locks the project's row until the transaction ends. So
// the next transaction sees all changes of this one, and takes greater numbers.
type numberedTx struct {
	pool      *pgdb.Pool
	tx        pgx.Tx
	projectID string
	first     int64 // the first of its numbers
}

// inNumberedTx runs do in a transaction of pool with n numbers of a project. It waits for open transactions that have
// taken numbers of the project. [pgdb.Pool.InTx] describes its errors.
func inNumberedTx(ctx context.Context, pool *pgdb.Pool, projectID string, n int, do func(ctx context.Context, tx numberedTx) error) error {
	return pool.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		first, err := takeSeq(ctx, tx, projectID, n)
		if err != nil {
			return err
		}
		return do(ctx, numberedTx{pool, tx, projectID, first})
	})
}

// put writes records and returns how many rows the statement returned. columns are those after the project.
func (t numberedTx) put(ctx context.Context, p insert.Put, columns ...any) (int, error) {
	return p.StoredIn(ctx, t.pool, t.tx, t.projectID, columns...)
}

// ids returns the ids that a statement finds. Its first parameter is the project, before args.
func (t numberedTx) ids(ctx context.Context, sql string, args ...any) ([]string, error) {
	rows, err := t.tx.Query(ctx, sql, append([]any{t.projectID}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// exec runs a statement, whose first parameter is the project, and returns the number of rows that it changed.
func (t numberedTx) exec(ctx context.Context, sql string, args ...any) (int, error) {
	tag, err := t.tx.Exec(ctx, sql, append([]any{t.projectID}, args...)...)
	return int(tag.RowsAffected()), err
}

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

// takeSeq takes n numbers of a project and returns the first.
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
