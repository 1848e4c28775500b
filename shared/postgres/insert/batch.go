package insert

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Batches splits records into batches in which no id occurs twice, because one statement can write a row only once. If
// the caller stores the batches in order, the result is the same as for the records one by one. Every id occurs in the
// first batch.
func Batches[T any](records []T, id func(*T) string) [][]T {
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
	batches := make([][]T, most+1)
	clear(times)
	for i := range records {
		n := times[id(&records[i])]
		times[id(&records[i])] = n + 1
		batches[n] = append(batches[n], records[i])
	}
	return batches
}

// Count returns the number that the statement sql selects. The statement's parameters are the project and args.
func Count(ctx context.Context, tx pgx.Tx, sql, projectID string, args ...any) (n int, err error) {
	err = tx.QueryRow(ctx, sql, append([]any{projectID}, args...)...).Scan(&n)
	return n, err
}

// Replaced returns how many of the stored records replaced a record in the database. distinct is the number of distinct
// ids in the batch, and known how many of these ids the database had before. The result is exact if no other
// transaction stores the same ids meanwhile.
func Replaced(stored, distinct, known int) int {
	return max(0, stored-max(0, distinct-known))
}

// Column returns one field of each record as a slice, for a parameter that is an array.
func Column[T, C any](records []T, field func(*T) C) []C {
	column := make([]C, len(records))
	for i := range records {
		column[i] = field(&records[i])
	}
	return column
}
