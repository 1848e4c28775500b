package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// lockClass is the first key of the advisory locks that copies take. The key separates these locks from the locks
	// of other programs.
	lockClass = 0x1ec7e42

	findHolder = `
SELECT a.pid, coalesce(host(a.client_addr), 'this host'), a.backend_start
FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.classid = $1::bigint::oid AND l.objid = (hashtext($2)::bigint & 4294967295)::oid
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
LIMIT 1`
)

// PooledError is the error of [Connect] for a pooler that gives each transaction another server process, such as
// PgBouncer with pool_mode = transaction.
type PooledError struct{ Host string }

// Error names the host of the pooler, and what to name in place of it.
func (e *PooledError) Error() string {
	return e.Host + " is a pooler that gives each transaction another server process (pool_mode = transaction); a copy needs one process: name the server itself, or a pooler of sessions"
}

// Connect opens a connection to one server process, which the lock, the settings and the staging tables of a copy need. The
// error is a [PooledError] if a pooler gives each transaction another process.
func Connect(ctx context.Context, config *pgx.ConnConfig) (_ *pgx.Conn, err error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
	}()
	first, err := processOf(ctx, conn)
	if err != nil || first == conn.PgConn().PID() {
		return conn, err
	}
	// A pooler has made up the id of the process. A pooler of transactions gives the process of conn, which is at rest, to the
	// other connection. Or else conn gets another process while the other connection keeps its own.
	other, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer other.Close(context.WithoutCancel(ctx))
	tx, err := other.Begin(ctx)
	if err != nil {
		return nil, err
	}
	its, err := processOf(ctx, tx)
	again := first
	if err == nil && its != first {
		again, err = processOf(ctx, conn)
	}
	if err == nil && (its == first || again != first) {
		err = &PooledError{config.Host}
	}
	return conn, err
}

// processOf returns the id of the server process that runs the statement.
func processOf(ctx context.Context, at interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (id uint32, err error) {
	err = at.QueryRow(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeSimpleProtocol).Scan(&id)
	return id, err
}

// session resets settings of a role or database that would harm a copy. A time limit would stop a large batch, or a
// repair, whose transaction waits for the feed. Row security would hide rows, so that a removal would not delete them. With
// row_security off, Postgres returns an error instead.
const session = `SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET row_security = off`

// session17 resets a time limit that Postgres 17 added. The statement is sent after session, because the time limit of the role
// holds for all statements that are sent together.
const session17 = `SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout'`

// connect opens a connection with the settings of session and stores it in d.conn.
func (d *Destination) connect(ctx context.Context) (err error) {
	if d.conn, err = Connect(ctx, d.config); err != nil {
		return d.explain("connect", err)
	}
	for _, set := range []string{session, session17} {
		if _, err := d.conn.Exec(ctx, set); err != nil {
			_ = d.Close()
			return d.explain("connect", err)
		}
	}
	return nil
}

// Lock takes an advisory lock on a schema for one sync, until conn closes. class is the first key of the lock, so
// locks of different classes do not exclude each other. The second key is a hash of the schema's name.
//
// Another sync may hold the lock, and Postgres may notice late that its process was killed. So Lock waits at most as
// long as wait. After that, Lock returns an error that names the connection with the lock, if Postgres shows the
// connection. Postgres notices within two minutes that the machine of a sync was lost, and not after two hours.
func Lock(ctx context.Context, conn *pgx.Conn, class int32, schema string, wait time.Duration) error {
	const set = `SELECT set_config('lock_timeout', $1, false), set_config('tcp_keepalives_idle', '60', false),
		set_config('tcp_keepalives_interval', '15', false), set_config('tcp_keepalives_count', '4', false)`
	if _, err := conn.Exec(ctx, set, fmt.Sprintf("%dms", max(wait.Milliseconds(), 1))); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1, hashtext($2))`, class, schema)
	if err == nil {
		_, err = conn.Exec(ctx, `RESET lock_timeout`)
	}
	if !locked(err) {
		return err
	}
	var pid int
	var host, holder string
	var since time.Time
	if err := conn.QueryRow(ctx, findHolder, class, schema).Scan(&pid, &host, &since); err == nil {
		holder = fmt.Sprintf(" (from %s since %s, Postgres process %d)", host, since.UTC().Format(time.RFC3339), pid)
	}
	return fmt.Errorf("another sync writes to the schema %s%s: stop it, or give another --schema", schema, holder)
}

// locked reports whether err means that lock_timeout has passed before Postgres granted a lock.
func locked(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "55P03"
}
