package lists

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
)

// frameBytes is the room that One allocates for the bytes of a record around its values: names, escapes, times as text.
const frameBytes = 512

// One returns the first row of sql as JSON, which appendRecord writes, with a newline at the end. If there is no row,
// One returns the error missing.
func One(ctx context.Context, pool pgdb.Querier, appendRecord func(dst []byte, row *pgdb.Raw) []byte, missing error, sql string, args ...any) ([]byte, error) {
	var body []byte
	err := pool.Query(ctx, func(rows pgx.Rows) error {
		row := pgdb.NewRaw(rows)
		for rows.Next() && body == nil {
			row.Next(rows)
			body = append(appendRecord(make([]byte, 0, row.Size()+frameBytes), &row), '\n')
		}
		return nil
	}, sql, args...)
	if err == nil && body == nil {
		err = missing
	}
	return body, err
}
