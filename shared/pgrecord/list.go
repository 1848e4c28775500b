package pgrecord

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/pagelist"
	"github.com/lectern-dev/lectern/shared/pgdb"
)

// List is a [pagelist.Source] whose every chunk is one statement. It serves one page.
type List struct {
	// Pool is read from, and should be [pgdb.Pinned]: the page's chunks then come from one database.
	Pool pgdb.Querier
	SQL  Statements

	// Arguments gives a statement's parameters: the range behind after and up to end, then its own as
	// [Statements] says, then those that all of the list's statements have.
	Arguments func(after, end pagelist.Position, own ...any) []any

	// Row says what the rows of a chunk are.
	Row Row

	// Position reads a row of SQL.Nth and SQL.Last.
	Position func(raw *pgdb.Raw) pagelist.Position

	// Missing is the error when SQL.First gives no row.
	Missing error

	found bool // First has given a row
}

// Statements read a list in one order.
type Statements struct {
	// First reads the first chunk where that tells also whether what the list is of exists: no row when
	// it does not, one that holds no record when it exists and the range is empty. Empty: Chunk
	// does. Its own parameter: the limit.
	First string

	// Chunk reads records in order. Its own parameter: the limit.
	Chunk string

	// Nth finds a position and the next one, from the index alone. Its own parameter: the offset.
	Nth string

	// Last finds the last position of the range, from the index alone. It has no parameter of its own.
	Last string
}

// Row says what a row of a list is.
type Row interface {
	// Place gives the sort key and the id of the row's record, valid until the next row; ok is false
	// when the row holds none.
	Place(raw *pgdb.Raw) (key int64, id []byte, ok bool)

	// Append appends the record as JSON.
	Append(dst []byte, raw *pgdb.Raw) []byte
}

// Chunk reads records into sink. A result that the sink has enough of is left, and no more of it is
// read than is cheaper than having the server end it. One that breaks off for a while ends the chunk where it
// stands: the next one goes on from there, on another connection.
func (l *List) Chunk(ctx context.Context, sink *pagelist.Sink, after, end pagelist.Position, limit int) error {
	asks := l.SQL.First != "" && !l.found
	sql := l.SQL.Chunk
	if asks {
		sql = l.SQL.First
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left, taken := false, 0
	err := l.Pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for n := 0; rows.Next(); n++ {
			raw.Next(rows)
			l.found = true
			key, id, ok := l.Row.Place(&raw)
			if !ok {
				continue
			}
			switch sink.Begin(key, id) {
			case pagelist.Skip:
				continue
			case pagelist.Stop:
				if left = longRest(n, limit, len(sink.Bytes())); left {
					cancel()
				}
				return nil
			}
			sink.SetBytes(l.Row.Append(sink.Bytes(), &raw))
			sink.End()
			taken++
		}
		return nil
	}, sql, l.Arguments(after, end, limit)...)
	switch {
	case left && errors.Is(err, context.Canceled):
		return nil // it was us
	case taken > 0 && Passes(err):
		sink.Cut()
		return nil
	case err == nil && asks && !l.found:
		return l.Missing
	}
	return err
}

// Passes tells whether what failed with err may work when asked for again. A list that has come to a
// record can go on behind it.
func Passes(err error) bool {
	return err != nil && apierr.From(err).Code() == apierr.Unavailable
}

// cheapRest is how many bytes of an unwanted rest of a result are read and dropped. A longer rest is cancelled,
// which costs the connection: pgx makes a new one.
const cheapRest = 8 << 20

// longRest reports whether the rest of a result is longer than cheapRest, by the rows and bytes read so far.
func longRest(read, limit, bytes int) bool {
	return (limit-read)*(bytes/max(read, 1)) > cheapRest
}

// Settle finds the end of a page.
func (l *List) Settle(ctx context.Context, after, end pagelist.Position, n int) (last pagelist.Position, found, more bool, err error) {
	if n < pagelist.All {
		last, found, more, err = l.settle(ctx, l.SQL.Nth, l.Arguments(after, end, n-1))
		if err != nil || found {
			return last, found, more, err
		}
	}
	last, found, _, err = l.settle(ctx, l.SQL.Last, l.Arguments(after, end))
	return last, found, false, err
}

// settle gives the position in the first row of a statement, and whether there is a second.
func (l *List) settle(ctx context.Context, sql string, args []any) (first pagelist.Position, found, more bool, err error) {
	err = l.Pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for rows.Next() {
			if found {
				more = true
				continue
			}
			raw.Next(rows)
			first, found = l.Position(&raw), true
		}
		return nil
	}, sql, args...)
	return first, found, more, err
}
