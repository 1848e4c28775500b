// Package citus owns what a service must know about a Citus cluster. It finds out whether its database is one, and
// which writes Citus acknowledged without certainty.
//
// It knows no worker and schedules nothing: the coordinator sends each statement to the worker that has the project.
// There is no configuration. On plain Postgres the package only checks on new connections, at most once a minute,
// whether the database has become a Citus cluster.
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

	"github.com/lectern-dev/lectern/shared/http/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
)

// detectInterval is the least time between two checks whether the database is a Citus cluster.
const detectInterval = time.Minute

// Attach makes the pool p check whether its database is a Citus cluster. Set it in [pgdb.Options].
func Attach(p *pgdb.Pool, o pgdb.Options, cfg *pgxpool.Config) {
	cfg.ConnConfig.OnNotice = noteWarning
	d := &detector{pool: p, timeout: o.ConnectTimeout}
	cfg.AfterConnect = d.detect
}

// detector checks on new connections whether the database is a Citus cluster.
type detector struct {
	pool    *pgdb.Pool
	timeout time.Duration

	mu    sync.Mutex
	asked time.Time
	found bool
}

// detect is called with each new connection of the pool before its first use.
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

// selectExtension selects whether tables may be distributed here at all.
const selectExtension = `SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')`

// errUnconfirmed is the cause of a 503 for a write that Citus acknowledged with a warning that it lost a worker. A
// commit on several servers has two phases. If a worker dies between them, its rows are invisible until it is back
// and the commit is completed. Such a write counts as failed: the client repeats it, and it is acknowledged when the
// rows are visible.
var errUnconfirmed = errors.New("written, but not yet visible on every worker")

// warningKey is the key under which a connection keeps the SQLSTATE of a warning during its statement.
const warningKey = "lectern citus warning"

// noteWarning notes a warning that a server was lost.
func noteWarning(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" && pgdb.TransientState(n.Code) {
		conn.CustomData()[warningKey] = n.Code
	}
}

// confirm returns errUnconfirmed for a write that succeeded with a warning, or else err.
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
