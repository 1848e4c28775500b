package pgrecord

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/pgdb"
)

// Waves parts records so that no id comes twice in a part, as a statement can write a row once only.
// Stored one after the other, the parts have the outcome of storing the records one after the other.
// Every id is in the first part.
func Waves[T any](records []T, id func(*T) string) [][]T {
	times := make(map[string]int, len(records))
	most := 0
	for i := range records {
		n := times[id(&records[i])]
		times[id(&records[i])] = n + 1
		most = max(most, n)
	}
	if most == 0 {
		return [][]T{records}
	}
	waves := make([][]T, most+1)
	clear(times)
	for i := range records {
		n := times[id(&records[i])]
		times[id(&records[i])] = n + 1
		waves[n] = append(waves[n], records[i])
	}
	return waves
}

// Column gives one field of each record: an array parameter.
func Column[T, C any](records []T, of func(*T) C) []C {
	column := make([]C, len(records))
	for i := range records {
		column[i] = of(&records[i])
	}
	return column
}

// Stored runs a statement that stores records and returns a row for each of them (RETURNING), and counts
// these. The number that comes with the statement's end would not do: where tables are distributed, it
// is that of the records given.
func Stored(ctx context.Context, pool pgdb.Querier, sql string, args ...any) (n int, err error) {
	err = pool.Query(ctx, func(rows pgx.Rows) error {
		for n = 0; rows.Next(); n++ {
		}
		return nil
	}, sql, args...)
	return n, err
}

// storedIn does as [Stored] in a transaction.
func storedIn(ctx context.Context, tx pgx.Tx, sql string, args ...any) (n int, err error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}
