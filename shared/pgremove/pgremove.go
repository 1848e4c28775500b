// Package pgremove removes everything that a service holds about a project, in short transactions. A service supplies
// its statements.
package pgremove

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/pgdb"
)

const (
	// RowsAtOnce is how many rows one statement removes. It continues to the end of the last row's key.
	RowsAtOnce = 500

	// mostStatements is how many statements one request runs.
	mostStatements = 20
)

// Project runs the statements in order. It repeats each, in a transaction of its own, until it removes nothing more.
// A statement takes the project as $1 and [RowsAtOnce] as $2, and returns a row for each row that it removes
// (RETURNING). Project returns how many rows each statement removed, even with an error. After 20 statements it
// stops, and reports that there may be more.
func Project(ctx context.Context, pool *pgdb.Pool, projectID string, statements ...string) (removed []int, more bool, err error) {
	removed = make([]int, len(statements))
	left := mostStatements
	for i, sql := range statements {
		for done := false; !done; left-- {
			if left == 0 {
				return removed, true, nil
			}
			n := 0
			err := pool.Query(ctx, func(rows pgx.Rows) error {
				for n = 0; rows.Next(); n++ {
				}
				return nil
			}, sql, projectID, RowsAtOnce)
			if err != nil {
				return removed, false, err
			}
			removed[i] += n
			done = n < RowsAtOnce
		}
	}
	return removed, false, nil
}
