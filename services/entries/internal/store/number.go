package store

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
	first     int64   // the first number that the transaction took
	lost      stretch // what the transaction found to be lost, if until is not 0
}

// Lost is a function that the store calls after a project has lost the numbers between after and until, because its
// database was restored. The store does not call it for a new project, nor for a project of version 0.1.0.
type Lost func(ctx context.Context, projectID string, after, until int64)

// stretch is a stretch of lost numbers between after and until.
type stretch struct{ after, until int64 }

// numbering opens the numbered transactions of a pool.
type numbering struct {
	pool  *pgdb.Pool
	lost  Lost
	hides atomic.Pointer[bool] // whether the server hides its identity; nil if numbering has not asked yet
}

// inTx runs do in a transaction that takes n numbers of a project. inTx first waits until every other transaction that
// took numbers of the project has ended. [pgdb.Pool.InTx] describes the errors of inTx.
func (c *numbering) inTx(ctx context.Context, projectID string, n int, do func(ctx context.Context, tx numberedTx) error) error {
	hides := c.hidesIdentity(ctx)
	var lost stretch
	err := c.pool.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		t := numberedTx{pool: c.pool, tx: tx, projectID: projectID}
		if err := t.take(ctx, n, hides); err != nil {
			return err
		}
		lost = t.lost
		return do(ctx, t)
	})
	if err == nil && lost.until != 0 {
		c.lost(ctx, projectID, lost.after, lost.until)
	}
	return err
}

// lose records that a project has lost its numbers after the number to.
func (c *numbering) lose(ctx context.Context, projectID string, to int64) error {
	hides := c.hidesIdentity(ctx)
	t := numberedTx{pool: c.pool, projectID: projectID}
	err := c.pool.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		t.tx, t.lost = tx, stretch{}
		identity, err := t.identity(ctx, hides)
		if err != nil {
			return err
		}
		return t.lose(ctx, identity, &to)
	})
	if err == nil && t.lost.until != 0 {
		c.lost(ctx, projectID, t.lost.after, t.lost.until)
	}
	return err
}

// hidesIdentity reports whether the server refuses selectIdentity, as servers do that are not quite Postgres. Then no
// identity is kept. hidesIdentity asks once, outside of the transactions, because a refusal ends a transaction.
func (c *numbering) hidesIdentity(ctx context.Context) bool {
	if hides := c.hides.Load(); hides != nil {
		return *hides
	}
	var identity string
	err := c.pool.QueryRow(ctx, []any{&identity}, selectIdentity)
	hides := false
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.SeverityUnlocalized == "ERROR" {
		switch pg.Code {
		case "42501", // insufficient_privilege
			"42883", // undefined_function
			"0A000", // feature_not_supported
			"58P01", // undefined_file
			"XX000": // internal_error
			hides = true
		}
	}
	if err == nil || hides {
		c.hides.Store(&hides)
	}
	return hides // after another error, the transaction fails likewise
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

const (
	// now is the current Unix time in microseconds.
	now = `(extract(epoch FROM statement_timestamp()) * 1000000)::bigint`

	// hour is an hour in microseconds.
	hour = `3600000000`

	// identity is the identity of the database: the server's, its timeline, and the oids of the database and of the
	// table. A promotion begins a timeline, which the control file has only after the next checkpoint.
	identity = `(SELECT concat_ws('/', s.system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8),
     substring(pg_relation_filepath('project_changes') FROM '(.*)/'), 'project_changes'::regclass::oid)
 FROM pg_control_system() s)`

	// takeNumbersAs takes $2 numbers of a project and returns the last of these numbers. The first number is at least
	// the current Unix time in microseconds. The statement returns no row if the project has no counter, or if the
	// counter's identity is not $3.
	takeNumbersAs = `
UPDATE project_changes
SET last_seq = greatest(last_seq + 1, ` + now + `) + $2::bigint - 1
WHERE project_id = $1 AND identity IS NOT DISTINCT FROM $3::text
RETURNING last_seq`
)

var (
	selectIdentity = "SELECT " + identity

	// takeNumbers is takeNumbersAs with the identity of the database. Citus allows no volatile function in an UPDATE.
	takeNumbers = strings.Replace(takeNumbersAs, "$3::text", identity, 1)
)

// take takes n numbers of the project. A counter may be missing, or was last written in another database. Then the
// project first loses the numbers that this database may not know.
func (t *numberedTx) take(ctx context.Context, n int, hides bool) error {
	taken := func(sql string, args ...any) error {
		var last int64
		err := t.tx.QueryRow(ctx, sql, append([]any{t.projectID, n}, args...)...).Scan(&last)
		t.first = last - int64(n) + 1
		return err
	}
	if !hides && !t.pool.Distributed() {
		if err := taken(takeNumbers); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
	}
	identity, err := t.identity(ctx, hides)
	if err != nil {
		return err
	}
	err = taken(takeNumbersAs, identity)
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err = t.exec(ctx, addCounter); err == nil {
			err = t.lose(ctx, identity, nil)
		}
		if err == nil {
			err = taken(takeNumbersAs, identity)
		}
	}
	return err
}

// identity reads the identity of the database, which is nil if the server hides it.
func (t *numberedTx) identity(ctx context.Context, hides bool) (identity *string, err error) {
	if !hides {
		err = t.tx.QueryRow(ctx, selectIdentity).Scan(&identity)
	}
	return identity, err
}

// Statements that record lost numbers. The rows of lost_numbers are the newest 100 of each project.
const (
	// addCounter inserts the row of project_changes that counts the changes of a project, unless there is one.
	addCounter = `
INSERT INTO project_changes (project_id, last_seq)
VALUES ($1, 0)
ON CONFLICT (project_id) DO NOTHING`

	// lostNumbers selects whether to report the loss, the last number that the project has, and the last one that it may
	// have lost. With $3, an administrator says that the numbers after $3 are lost, whatever the identity.
	//
	// The last number that may be lost is an hour from now, because the clock may be slow. After numbers were lost, the
	// last number is ahead of the clock for some hours. Then the statement adds these hours to the time, and not to the
	// number. A backup from that time, restored a second time, otherwise went on at the same number.
	lostNumbers = `
SELECT $3::bigint IS NOT NULL OR identity IS NOT NULL AND last_seq > 0, least(last_seq, $3), ` + now + ` + ` + hour + ` * (1 + (greatest(last_seq - ` + now + `, 0) + ` + hour + ` - 1) / ` + hour + `)
FROM project_changes
WHERE project_id = $1 AND ($3::bigint IS NOT NULL OR last_seq = 0 OR identity IS DISTINCT FROM $2::text)
FOR UPDATE`

	addLost = `
INSERT INTO lost_numbers (project_id, after, until)
VALUES ($1, $2, $3)
ON CONFLICT (project_id, until, after) DO NOTHING`

	removeOldLost = `
DELETE FROM lost_numbers
WHERE project_id = $1 AND until <= (
    SELECT until
    FROM lost_numbers
    WHERE project_id = $1
    ORDER BY until DESC
    OFFSET 100
    LIMIT 1)`

	goOn = `
UPDATE project_changes
SET last_seq = $2, identity = $3
WHERE project_id = $1`
)

// lose records that the project may have lost the numbers after its last one, and after the number to if it is not nil.
// lose makes the next number greater than these. Without to, nothing is recorded if another transaction has just done so.
func (t *numberedTx) lose(ctx context.Context, identity *string, to *int64) error {
	var known bool
	var l stretch
	err := t.tx.QueryRow(ctx, lostNumbers, t.projectID, identity, to).Scan(&known, &l.after, &l.until)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = t.exec(ctx, addLost, l.after, l.until)
	}
	if err == nil {
		_, err = t.exec(ctx, removeOldLost)
	}
	if err == nil {
		_, err = t.exec(ctx, goOn, l.until, identity)
	}
	if known {
		t.lost = l
	}
	return err
}
