package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/insert"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
)

// numberedTx is a transaction that takes numbers of a project before any other statement on that project. The store
// writes entries, events and removals only in a numberedTx. takeNumbers locks the project's row until the transaction
// ends. So the next transaction sees all changes of this transaction, and takes greater numbers.
type numberedTx struct {
	pool      *pgdb.Pool
	tx        pgx.Tx
	projectID string
	first     int64 // the first number that the transaction took
}

// inNumberedTx runs do in a transaction of pool that takes n numbers of a project. inNumberedTx first waits until
// every other transaction that took numbers of the project has ended. [pgdb.Pool.InTx] describes the errors of
// inNumberedTx.
func inNumberedTx(ctx context.Context, pool *pgdb.Pool, projectID string, n int, do func(ctx context.Context, tx numberedTx) error) error {
	return pool.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		first, err := takeSeq(ctx, tx, projectID, n)
		if err != nil {
			return err
		}
		return do(ctx, numberedTx{pool, tx, projectID, first})
	})
}

// put writes records and returns how many rows the statement returned. columns has a slice for each column after the
// project, in the order of the statement.
func (t numberedTx) put(ctx context.Context, p insert.Put, columns ...any) (int, error) {
	return p.StoredIn(ctx, t.pool, t.tx, t.projectID, columns...)
}

// ids runs a query and returns the ids in its only column. The parameters of the query are the project and then args.
func (t numberedTx) ids(ctx context.Context, sql string, args ...any) ([]string, error) {
	rows, err := t.tx.Query(ctx, sql, append([]any{t.projectID}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// exec runs a statement and returns how many rows it changed. The parameters of the statement are the project and
// then args.
func (t numberedTx) exec(ctx context.Context, sql string, args ...any) (int, error) {
	tag, err := t.tx.Exec(ctx, sql, append([]any{t.projectID}, args...)...)
	return int(tag.RowsAffected()), err
}

// takeNumbers takes $2 numbers of a project and returns the last of these numbers. The first number is at least the
// current Unix time in microseconds. Without a counter, the statement returns no row.
const takeNumbers = `
UPDATE project_changes
SET last_seq = greatest(last_seq + 1, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint) + $2::bigint - 1
WHERE project_id = $1
RETURNING last_seq`

// addCounter inserts the row of project_changes that counts the changes of a project, unless there is one.
const addCounter = `
INSERT INTO project_changes (project_id, last_seq)
VALUES ($1, 0)
ON CONFLICT (project_id) DO NOTHING`

// takeSeq takes n numbers of a project and returns the first number. If the project has no counter, takeSeq adds the
// counter.
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
