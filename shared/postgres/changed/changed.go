// Package changed numbers the changes of a project's records that a service stores. With the number of its last look, a
// reader can ask for the records that have changed since.
//
// No number is given twice in a project, even if the database was restored from a backup between: each number has a
// random part. A table keeps all numbers. A reader whose number is not in the table is told that its history is lost,
// whatever the reason.
package changed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
)

// Numbers has the statements for a table of numbers, which has the columns project_id and number. The row with the
// number 0 is a project's lock, and no number.
type Numbers struct{ Lock, Newest, Add, Position string }

// In returns the Numbers of a table.
func In(table string) Numbers {
	const newest = `SELECT number FROM %s WHERE project_id = $1 ORDER BY number DESC LIMIT 1`
	return Numbers{
		Lock:   fmt.Sprintf(`SELECT number FROM %s WHERE project_id = $1 AND number = 0 FOR UPDATE`, table),
		Newest: fmt.Sprintf(newest, table),
		Add:    fmt.Sprintf(`INSERT INTO %s (project_id, number) VALUES ($1, $2) ON CONFLICT (project_id, number) DO NOTHING`, table),
		// Position selects the newest number, the last number up to $2, and the first number from $2 on.
		Position: fmt.Sprintf(`SELECT n.number,
    (SELECT l.number FROM %[1]s l WHERE l.project_id = $1 AND l.number <= $2 ORDER BY l.number DESC LIMIT 1),
    (SELECT u.number FROM %[1]s u WHERE u.project_id = $1 AND u.number >= $2 ORDER BY u.number LIMIT 1)
FROM %[1]s n WHERE n.project_id = $1 ORDER BY n.number DESC LIMIT 1`, table),
	}
}

// random is the bound of the random part of a number, which is about a second in microseconds.
const random = 1 << 20

// InTx runs store in a transaction, with the number of its changes. InTx first waits until other transactions that
// change records of the project have ended, so greater numbers are committed later. If store stores nothing, the number
// is not taken. [pgdb.Pool.InTx] describes the errors of InTx.
func (n Numbers) InTx(ctx context.Context, pool *pgdb.Pool, projectID string, store func(ctx context.Context, tx pgx.Tx, number int64) (stored int, err error)) error {
	return pool.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var newest int64
		err := tx.QueryRow(ctx, n.Lock, projectID).Scan(&newest)
		for errors.Is(err, pgx.ErrNoRows) {
			if _, err = tx.Exec(ctx, n.Add, projectID, 0); err == nil {
				err = tx.QueryRow(ctx, n.Lock, projectID).Scan(&newest)
			}
		}
		if err == nil {
			err = tx.QueryRow(ctx, n.Newest, projectID).Scan(&newest)
		}
		if err != nil {
			return err
		}
		number := max(time.Now().UnixMicro(), newest) + 1 + rand.Int64N(random)
		stored, err := store(ctx, tx, number)
		if err == nil && stored > 0 {
			_, err = tx.Exec(ctx, n.Add, projectID, number)
		}
		return err
	})
}

// All is the number of a reader that asks for all records.
const All = -1

// View is a database as a reader sees it: at least as new as the project's change with the number Newest.
type View struct {
	pgdb.Querier
	Newest int64 // 0: no change has a number
	After  int64 // the reader asks for the records that changed after this number, or for [All]
}

// View reads a project's newest number, and returns a View with the database from which the number came. With a number
// after, this is the primary, because a standby may not know the number. The error is a HistoryLost if the project has
// not given the number after, or has lost it.
func (n Numbers) View(ctx context.Context, read, primary pgdb.Querier, projectID string, after int64) (View, error) {
	v := View{Querier: pgdb.Pinned(read), After: after}
	if after != All {
		v.Querier = primary
	}
	var lower int64
	var upper *int64
	err := v.Query(ctx, func(rows pgx.Rows) error {
		var least *int64
		for rows.Next() {
			if err := rows.Scan(&v.Newest, &least, &upper); err != nil {
				return err
			}
		}
		if least != nil {
			lower = *least
		}
		return nil
	}, n.Position, projectID, after)
	if err == nil && after > lower {
		err = apierr.LostHistory(lower, upper)
	}
	return v, err
}

// Reader returns the database for a record that must be at least as new as the change after: the primary. If after is
// [All], Reader returns read. The error is a HistoryLost as in [Numbers.View].
func (n Numbers) Reader(ctx context.Context, read, primary pgdb.Querier, projectID string, after int64) (pgdb.Querier, error) {
	if after == All {
		return read, nil
	}
	v, err := n.View(ctx, read, primary, projectID, after)
	return v.Querier, err
}
