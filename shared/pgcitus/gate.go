// Package pgcitus owns what a service must know about a Citus cluster. It finds out whether its database is a
// cluster, which worker has which projects, and the state of the workers.
//
// It bounds the cost of a failing worker (a bulkhead for each worker). A worker that is down needs no bound: the
// coordinator reports it at once, and only for the worker's own projects. A worker that hangs would take every
// connection of the pool, as each statement waits for it. So no worker may use more than its share of the pool. The
// package probes a worker that does not answer on a connection outside the pool. If the probe gets no answer either,
// the worker's statements are cancelled. No more are admitted until the worker answers.
//
// There is no configuration: the package reads everything from the database. On plain Postgres it only checks on new
// connections, at most once a minute, whether the database has become a Citus cluster.
package pgcitus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/telemetry/untraced"
)

const (
	// detectInterval is the least time between two checks whether the database is a Citus cluster.
	detectInterval = time.Minute

	// placementInterval is the interval of reading the placement.
	placementInterval = 5 * time.Second

	// checkInterval is the interval of checking the workers' state.
	checkInterval = 200 * time.Millisecond

	// probeTimeout is how long a worker may take to answer a probe. After that it is treated as hanging.
	probeTimeout = 1500 * time.Millisecond

	// probeLimit is how long the package waits for a late answer to a probe.
	probeLimit = 5 * time.Second
)

// Attach makes the pool p check whether its database is a Citus cluster, and gives it a gate if so. Set it in
// [pgdb.Options].
func Attach(p *pgdb.Pool, o pgdb.Options, cfg *pgxpool.Config) {
	cfg.ConnConfig.OnNotice = noteWarning
	d := &detector{gate: &gate{pool: p, options: o, conn: cfg.ConnConfig.Copy()}}
	cfg.AfterConnect = d.detect
}

// detector checks on new connections whether the database is a Citus cluster.
type detector struct {
	gate *gate

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
	ctx, cancel := context.WithTimeout(ctx, d.gate.options.ConnectTimeout)
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
		return d.gate.start()
	}
	return nil
}

// selectExtension selects whether tables may be distributed here at all.
const selectExtension = `SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')`

// gate is the [pgdb.Gate] of a Citus cluster.
type gate struct {
	pool      *pgdb.Pool
	options   pgdb.Options
	conn      *pgx.ConnConfig // for probes
	placement atomic.Pointer[placement]

	cancel     context.CancelFunc
	background sync.WaitGroup
	meters     metric.Registration // nil when nothing is measured
}

var _ pgdb.Gate = (*gate)(nil)

// start attaches the gate to its pool and runs its background work.
func (g *gate) start() error {
	var err error
	if g.meters, err = g.measure(g.options.MeterProvider); err != nil {
		return fmt.Errorf("measure the Citus workers: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.background.Go(func() { g.run(ctx) })
	g.pool.SetGate(g)
	return nil
}

// Close stops the background work.
func (g *gate) Close() {
	g.cancel()
	g.background.Wait()
	if g.meters != nil {
		_ = g.meters.Unregister() // cannot fail: it was registered
	}
}

// Enter admits a statement of a project. It waits while the project's worker has its share of connections in use.
func (g *gate) Enter(ctx context.Context, project string) (context.Context, pgdb.Leave, error) {
	at := g.placement.Load()
	if at == nil || project == "" {
		return ctx, leaveUnplaced, nil
	}
	w := at.workerOf(project)
	if w == nil {
		return ctx, leaveUnplaced, nil
	}
	ctx, s, err := w.enter(ctx, project, g.options.AcquireTimeout)
	if err != nil {
		return nil, nil, err
	}
	return ctx, func(conn *pgconn.PgConn, tag pgconn.CommandTag, err error) error {
		err = unconfirmed(conn, tag, err)
		s.leave(outcomeOf(err))
		return s.meaning(err)
	}, nil
}

// leaveUnplaced ends a statement that belongs to no known worker.
func leaveUnplaced(conn *pgconn.PgConn, tag pgconn.CommandTag, err error) error {
	return unconfirmed(conn, tag, err)
}

// outcomeOf returns what the end of a statement shows about its worker.
func outcomeOf(err error) outcome {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		return outcomeSucceeded
	case errors.Is(err, errUnconfirmed):
		return outcomeUnreachable
	case !ok, pg.Code == "57014": // a time-out shows nothing about the worker
		return outcomeUnknown
	case workerLost(pg):
		return outcomeUnreachable
	}
	return outcomeAnswered
}

// workerLost reports whether an error of a Citus node says that it cannot reach a worker. Errors of class 08 about
// the client's own connection end that connection (FATAL).
func workerLost(pg *pgconn.PgError) bool {
	return pg.SeverityUnlocalized == "ERROR" && len(pg.Code) == 5 && pg.Code[:2] == "08"
}

// run reads the placement and probes suspect workers until ctx ends.
func (g *gate) run(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	var read time.Time
	var running sync.WaitGroup
	defer running.Wait()
	ctx = untraced.Context(ctx)
	for {
		if time.Since(read) >= placementInterval {
			read = time.Now()
			running.Go(func() { g.readPlacement(ctx) })
		}
		if at := g.placement.Load(); at != nil {
			for _, w := range at.workers {
				if project, suspect := w.suspect(g.options.AcquireTimeout); suspect && w.probing.CompareAndSwap(false, true) {
					running.Go(func() {
						defer w.probing.Store(false)
						g.probe(ctx, at, w, project)
					})
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// readPlacement reads the placement. If that fails it keeps the old one, unless the database hashes differently.
func (g *gate) readPlacement(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, placementInterval)
	defer cancel()
	next, err := g.loadPlacement(ctx, g.placement.Load())
	if errors.Is(err, errOtherHash) {
		g.placement.Store(nil)
	} else if err == nil {
		g.placement.Store(next)
	}
}

// probe reads a row of project from the worker. It uses a connection outside the pool, as all of the pool's own may
// wait for the worker. A worker without an answer after probeTimeout hangs. The probe waits longer than that: a
// worker that recovers answers the probe first.
func (g *gate) probe(ctx context.Context, at *placement, w *worker, project string) {
	conn, err := g.connect(ctx)
	if err != nil {
		return // this shows nothing about the worker
	}
	query, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	began, answer := time.Now(), make(chan error, 1)
	go func() {
		_, err := conn.Exec(query, "SELECT FROM "+at.table+" WHERE project_id = $1 LIMIT 1", pgx.QueryExecModeExec, project)
		answer <- err
	}()
	late := time.NewTimer(probeTimeout)
	defer late.Stop()
	select {
	case err = <-answer:
	case <-late.C:
		w.set(hanging, began, fmt.Errorf("no answer within %v", probeTimeout))
		err = <-answer
	}
	if state := stateOf(err); state != "" {
		w.set(state, began, err)
	}
	if !conn.IsClosed() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
		defer cancel()
		_ = conn.Close(closing) // nothing is lost with it
	}
}

// connect opens a connection outside the pool.
func (g *gate) connect(ctx context.Context) (*pgx.Conn, error) {
	cfg := g.conn.Copy()
	cfg.ConnectTimeout = probeTimeout
	if g.options.StatementTimeout > 0 {
		// A shorter time-out would end the probe with an answer of the coordinator.
		cfg.RuntimeParams["statement_timeout"] = fmt.Sprint(2 * probeLimit.Milliseconds())
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return pgx.ConnectConfig(ctx, cfg)
}

// stateOf returns the state of a worker by the outcome of a probe, or "" if the probe does not show it.
func stateOf(err error) state {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		return serving
	case !ok:
		return ""
	case workerLost(pg):
		return down
	case pg.Code == "57014": // by the role's own statement_timeout
		return hanging
	case pg.SeverityUnlocalized == "ERROR":
		return serving
	}
	return ""
}

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

// unconfirmed returns errUnconfirmed for a write that succeeded with a warning, or else err.
func unconfirmed(conn *pgconn.PgConn, tag pgconn.CommandTag, err error) error {
	if conn == nil {
		return err
	}
	code, warned := conn.CustomData()[warningKey]
	if !warned {
		return err
	}
	delete(conn.CustomData(), warningKey)
	if err != nil || tag.Select() {
		return err
	}
	return fmt.Errorf("%w: %w (SQLSTATE %s)", pgdb.ErrShard, errUnconfirmed, code)
}

// logger returns the logger of this pool's workers.
func (g *gate) logger() *slog.Logger {
	return g.options.Log.With(slog.String("pool", g.options.Name))
}
