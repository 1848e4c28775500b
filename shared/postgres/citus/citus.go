// Package citus owns all that a service must know about a Citus cluster. The package finds out whether its database is
// a cluster, and which writes Citus acknowledged without certainty.
//
// Package citus knows no worker and schedules nothing: the coordinator sends each statement to the worker that has the
// project. There is no configuration. On plain Postgres the package only checks on new connections, at most once a
// minute, whether the database has become a Citus cluster.
package citus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
)

// detectInterval is the least time between two checks of a pool whether its database is a Citus cluster.
const detectInterval = time.Minute

// Attach makes the pool p check on new connections whether its database is a Citus cluster. The caller of [pgdb.Open]
// sets Attach in [pgdb.Options].
func Attach(p *pgdb.Pool, o pgdb.Options, cfg *pgxpool.Config) {
	cfg.ConnConfig.OnNotice = noteWarning
	d := &detector{pool: p, timeout: cfg.ConnConfig.ConnectTimeout}
	cfg.AfterConnect = d.detect
}

// detector checks on new connections of one pool whether the database is a Citus cluster.
type detector struct {
	pool    *pgdb.Pool
	timeout time.Duration

	mu    sync.Mutex
	asked time.Time
	found bool
}

// detect runs on each new connection before its first use. detect asks whether the database has Citus, unless a check
// has found Citus already, or has run within detectInterval. The error reports a connection that broke.
func (d *detector) detect(ctx context.Context, conn *pgx.Conn) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found || time.Since(d.asked) < detectInterval {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	var is bool
	if err := conn.QueryRow(ctx, selectExtension, pgx.QueryExecModeSimpleProtocol).Scan(&is); err != nil {
		if conn.IsClosed() {
			return err
		}
		return nil // the connection's user will get the same fault
	}
	d.asked, d.found = time.Now(), is
	if is {
		d.pool.SetDistributed(confirm)
	}
	return nil
}

// selectExtension selects whether the database has the extension Citus, so that its tables may be distributed.
const selectExtension = `SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')`

// errUnconfirmed is the cause of a 503 for a write that Citus acknowledged with a warning that it lost a worker. A
// commit on several servers has two phases. If a worker dies between the phases, its rows are invisible until it is
// back and the commit is completed. Such a write counts as failed: the client repeats the write, and the server
// acknowledges it when the rows are visible.
var errUnconfirmed = errors.New("written, but not yet visible on every worker")

// warningKey is the key under which a connection keeps the SQLSTATE of a warning during its statement.
const warningKey = "lectern citus warning"

// noteWarning notes on the connection that its statement got a warning about a lost server. confirm reads the note.
func noteWarning(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" && pgdb.TransientState(n.Code) {
		conn.CustomData()[warningKey] = n.Code
	}
}

// confirm is the pool's [pgdb.Confirm]. confirm returns a 503 with errUnconfirmed for a write that succeeded with a
// warning about a lost server. Otherwise confirm returns err.
func confirm(conn *pgconn.PgConn, tag pgconn.CommandTag, err error) error {
	code, warned := conn.CustomData()[warningKey]
	if !warned {
		return err
	}
	delete(conn.CustomData(), warningKey)
	if err != nil || tag.Select() {
		return err
	}
	return apierr.NotAvailable(fmt.Errorf("%w (SQLSTATE %s)", errUnconfirmed, code))
}
