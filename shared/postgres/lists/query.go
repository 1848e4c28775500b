package lists

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
)

// Query is a [Source] that reads a list from Postgres, with one statement for each chunk. A Query serves one page.
type Query struct {
	// Pool runs the statements, and should be [pgdb.Pinned], so that all chunks come from one database.
	Pool pgdb.Querier
	SQL  Statements

	List  []any                // the parameters of the list
	Bound func(Position) []any // the parameters of one end of the range

	// Key reads the sort key and the id of a row's record. The id is valid until the next row. ok is false
	// for a row without a record.
	Key func(row *pgdb.Raw) (key int64, id []byte, ok bool)

	// Append appends a row's record as JSON.
	Append func(dst []byte, row *pgdb.Raw) []byte

	// Position reads the position in a row of SQL.Nth or SQL.Last.
	Position func(row *pgdb.Raw) Position

	// Missing is the error if SQL.First returns no row.
	Missing error

	found bool // First has returned a row
}

// Arguments returns the parameters of a statement in the order of [Statements]: the list's, the range's from after to
// end, and own, the statement's own.
func (q *Query) Arguments(after, end Position, own ...any) []any {
	return slices.Concat(q.List, q.Bound(after), q.Bound(end), own)
}

// Chunk implements [Source]. When the sink is full, Chunk reads a short rest of the result to its end and cancels a
// long rest. If a statement fails with a [Retryable] error after some records, the chunk ends there without an error.
// The error is q.Missing if SQL.First returns no row.
func (q *Query) Chunk(ctx context.Context, sink *Sink, after, end Position, limit int) error {
	isFirst := q.SQL.First != "" && !q.found
	sql := q.SQL.Chunk
	if isFirst {
		sql = q.SQL.First
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cancelled, taken := false, 0
	err := q.Pool.Query(ctx, func(rows pgx.Rows) error {
		row := pgdb.NewRaw(rows)
		for n := 0; rows.Next(); n++ {
			row.Next(rows)
			q.found = true
			key, id, ok := q.Key(&row)
			if !ok {
				continue
			}
			switch sink.Begin(key, id) {
			case Skip:
				continue
			case Stop:
				if cancelled = isLong(limit-n, len(sink.Bytes())/max(n, 1)); cancelled {
					cancel()
				}
				return nil
			}
			sink.SetBytes(q.Append(sink.Bytes(), &row))
			sink.End()
			taken++
		}
		return nil
	}, sql, q.Arguments(after, end, limit)...)
	switch {
	case cancelled && errors.Is(err, context.Canceled):
		return nil
	case taken > 0 && Retryable(err):
		sink.Cut()
		return nil
	case err == nil && isFirst && !q.found:
		return q.Missing
	}
	return err
}

// Retryable reports whether the error err is temporary (the apierr Unavailable), so that the caller may repeat the
// statement.
func Retryable(err error) bool {
	return err != nil && apierr.From(err).Code() == apierr.Unavailable
}

// isLong reports whether the rest of a result is cheaper to cancel than to read: rows of rowBytes each, together more
// than 8 MiB. A cancel costs the connection, and pgx opens a new connection.
func isLong(rows, rowBytes int) bool { return rows*rowBytes > 8<<20 }

// Settle implements [Source]: it finds the n-th record after the position after, or the last record of the range if
// there are fewer.
func (q *Query) Settle(ctx context.Context, after, end Position, n int) (last Position, found, more bool, err error) {
	if n < All {
		last, found, more, err = q.settle(ctx, q.SQL.Nth, q.Arguments(after, end, n-1))
		if err != nil || found {
			return last, found, more, err
		}
	}
	last, found, _, err = q.settle(ctx, q.SQL.Last, q.Arguments(after, end))
	return last, found, false, err
}

// settle returns the position in a statement's first row, and whether there is a second row.
func (q *Query) settle(ctx context.Context, sql string, args []any) (first Position, found, more bool, err error) {
	err = q.Pool.Query(ctx, func(rows pgx.Rows) error {
		row := pgdb.NewRaw(rows)
		for rows.Next() {
			if found {
				more = true
				continue
			}
			row.Next(rows)
			first, found = q.Position(&row), true
		}
		return nil
	}, sql, args...)
	return first, found, more, err
}
