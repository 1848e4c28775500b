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
	// lockClass is the class of the locks of copies.
	lockClass = 0x1ec7e42

	findHolder = `
SELECT a.pid, coalesce(host(a.client_addr), 'this host'), a.backend_start
FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.classid = $1::bigint::oid AND l.objid = (hashtext($2)::bigint & 4294967295)::oid
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
LIMIT 1`
)

// Lock locks a schema for one sync, until conn ends. Locks of another class do not exclude it: the class is the first key of an
// advisory lock. The second one is made of the schema's name. Another sync may hold the lock, also a killed one until Postgres
// notices, so Lock waits as long as wait. Then the error names the connection that holds it, as far as Postgres shows it.
func Lock(ctx context.Context, conn *pgx.Conn, class int32, schema string, wait time.Duration) error {
	if _, err := conn.Exec(ctx, `SELECT set_config('lock_timeout', $1, false)`, fmt.Sprintf("%dms", max(wait.Milliseconds(), 1))); err != nil {
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

// locked reports whether err is that of a lock_timeout.
func locked(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "55P03"
}
