// Package pgrecord moves records between Postgres and the API: rows become the bytes of an answer, one
// record or a list of them, without a struct for each; batches become the parameters of a statement.
// Services bring the statements and say what a row is.
package pgrecord

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/pgdb"
)

// frame is room for what stands around the values of a record: names, escapes, times as text.
const frame = 512

// One returns the record in the first row of a statement, as encode appends it, with a line's end
// behind it; missing when there is no row.
func One(ctx context.Context, pool pgdb.Querier, encode func(dst []byte, raw *pgdb.Raw) []byte, missing error, sql string, args ...any) ([]byte, error) {
	var body []byte
	err := pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for rows.Next() && body == nil {
			raw.Next(rows)
			body = append(encode(make([]byte, 0, raw.Size()+frame), &raw), '\n')
		}
		return nil
	}, sql, args...)
	if err == nil && body == nil {
		err = missing
	}
	return body, err
}
