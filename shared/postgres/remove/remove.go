// Package remove removes the rows that a service has about a project, in short transactions. The service names its
// tables.
package remove

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
)

const (
	// rowsAtOnce is how many rows one statement removes. The statement also removes further rows with the last row's
	// key.
	rowsAtOnce = 500

	// mostStatements is how many statements one call of [Project] runs at most.
	mostStatements = 20
)

// Table is a table with the column project_id, from which [Project] removes rows in the order of the column Key.
type Table struct{ Name, Key string }

// removeFirst removes the first rows of a project in a table. removeFirst returns a row for each, because the row count
// of the statement itself would be wrong on distributed tables.
const removeFirst = `
DELETE FROM %[1]s
WHERE project_id = $1 AND %[2]s <= (
    SELECT w.%[2]s
    FROM (SELECT %[2]s FROM %[1]s WHERE project_id = $1 ORDER BY %[2]s LIMIT $2) w
    ORDER BY w.%[2]s DESC
    LIMIT 1)
RETURNING 1`

// Project removes the project's rows of the tables in order, 500 in a transaction. removed is how many rows of
// each table Project removed, even with an error. After 20 statements Project stops, and more reports that rows may be
// left.
func Project(ctx context.Context, pool *pgdb.Pool, projectID string, tables ...Table) (removed []int, more bool, err error) {
	removed = make([]int, len(tables))
	left := mostStatements
	for i, table := range tables {
		sql := fmt.Sprintf(removeFirst, table.Name, table.Key)
		for done := false; !done; left-- {
			if left == 0 {
				return removed, true, nil
			}
			n := 0
			err := pool.Query(ctx, func(rows pgx.Rows) error {
				for n = 0; rows.Next(); n++ {
				}
				return nil
			}, sql, projectID, rowsAtOnce)
			if err != nil {
				return removed, false, err
			}
			removed[i] += n
			done = n < rowsAtOnce
		}
	}
	return removed, false, nil
}
