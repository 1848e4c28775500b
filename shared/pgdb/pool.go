package pgdb

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"

	"github.com/lectern-dev/lectern/shared/config"
)

// errNoConnection is the cause of a 503 when no connection was to be had in time: all are taken, or a
// new one can not be made.
var errNoConnection = errors.New("no database connection in time")

// grace is how long after the server's own time-out a statement is given up from this side.
const grace = time.Second

// Pool is a pool of connections to one database as one role. Its methods may be called from several
// goroutines; each returns the connection before it returns, and errors that [Fault] has judged.
type Pool struct {
	pool    *pgxpool.Pool
	options Options
	traced  bool
	current atomic.Pointer[patience]
	done    atomic.Int64 // statements and transactions that succeeded: what Health sees progress by

	bulkheads bulkheads
	briefs    briefs
	meters    metric.Registration // nil when nothing is measured
}

// patience is a context for acquiring, shared by the requests of a short while.
type patience struct {
	context.Context
	fresh time.Time // until then it leaves the whole acquire time-out to who takes it
}

// Open makes a pool for the database at url. It connects when first used: a server that is down makes
// no error here and is seen when it is back. Options that are zero and may not be take their default.
// The caller closes the pool.
func Open(ctx context.Context, url config.Secret, o Options) (*Pool, error) {
	if url.IsZero() {
		return nil, errors.New("open a database pool: no URL given")
	}
	o = o.withDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(url.Reveal())
	if err != nil {
		return nil, errBadURL
	}
	o.configure(cfg)
	p := &Pool{options: o, traced: cfg.ConnConfig.Tracer != nil}
	p.briefs.choice = choice{few: min(runtime.GOMAXPROCS(0), int(o.MaxConns)), all: int(o.MaxConns)}
	p.bulkheads.ctx, p.bulkheads.cancel = context.WithCancel(context.WithoutCancel(ctx))
	cfg.AfterConnect = p.afterConnect
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open a database pool: %w", err)
	}
	p.pool = pool
	if o.MeterProvider != nil {
		err := otelpgx.RecordStats(pool, otelpgx.WithStatsMeterProvider(o.MeterProvider),
			// The default has host and port in it: one series for each place the database ever stood at.
			otelpgx.WithStatsAttributes(semconv.DBClientConnectionPoolName(o.Name)))
		if err == nil {
			err = p.measure(o.MeterProvider)
		}
		if err != nil {
			pool.Close()
			return nil, fmt.Errorf("measure the database pool: %w", err)
		}
	}
	return p, nil
}

// errBadURL leaves out the URL: what is wrong in it may be the password.
var errBadURL = errors.New("the database URL can not be read: want postgres://user:password@host:port/database?sslmode=…")

// Close ends the pool when all connections are back. Figures of a closed pool stay where they were.
func (p *Pool) Close() {
	p.bulkheads.cancel()
	p.bulkheads.behind.Wait()
	if p.meters != nil {
		_ = p.meters.Unregister() // fails on nothing that was registered
	}
	p.pool.Close()
}

// acquire takes a connection, for at most the statement's time.
func (p *Pool) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	wait := p.patience()
	if p.traced { // the span of the wait belongs to the request
		own, cancel := context.WithTimeout(ctx, p.options.AcquireTimeout)
		defer cancel()
		wait = own
	}
	conn, err := p.pool.Acquire(wait)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if wait.Err() != nil && errors.Is(err, wait.Err()) {
			return nil, errNoConnection
		}
		return nil, err
	}
	p.bound(conn, true)
	return conn, nil
}

// patience returns a context that ends after the acquire time-out, or up to a quarter of it later. A
// context of its own would cost each request five allocations, to end a wait that hardly ever is one.
// It does not end with the request; the wait is short, and the statement after it does.
func (p *Pool) patience() context.Context {
	now := time.Now()
	if c := p.current.Load(); c != nil && now.Before(c.fresh) {
		return c
	}
	slack := p.options.AcquireTimeout / 4
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(p.options.AcquireTimeout+slack, func() { cancel(errNoConnection) })
	c := &patience{Context: ctx, fresh: now.Add(slack)}
	p.current.Store(c)
	return c
}

// bound gives the connection its deadline, or takes it away.
func (p *Pool) bound(conn *pgxpool.Conn, on bool) {
	if p.options.StatementTimeout == 0 || conn.Conn().IsClosed() {
		return
	}
	var deadline time.Time
	if on {
		deadline = time.Now().Add(p.options.StatementTimeout + grace)
	}
	sessionOf(conn.Conn().PgConn()).bound(deadline)
}

// lease is a connection that is in use.
type lease struct {
	ctx   context.Context // of the use
	conn  *pgxpool.Conn
	visit *visit // where tables are distributed, else nil
	whole bool   // the server has given its whole answer, whatever was made of it
}

// borrow takes a connection for a statement or transaction of a project, empty when it is of none.
func (p *Pool) borrow(ctx context.Context, project string) (l lease, err error) {
	if l.ctx, l.visit, err = p.enter(ctx, project); err != nil {
		return l, err
	}
	if l.conn, err = p.acquire(l.ctx); err != nil && l.visit != nil {
		err = l.visit.meaning(err)
		l.visit.leave(nothing)
	}
	return l, err
}

// meaning gives what an outcome means that came with tag.
func (l lease) meaning(tag pgconn.CommandTag, err error) error {
	if err == nil {
		return doubt(l.conn.Conn().PgConn(), tag)
	}
	err = left(l.ctx, err)
	if l.visit != nil {
		return l.visit.meaning(err)
	}
	return err
}

// giveBack returns a connection that was used with the outcome err.
func (p *Pool) giveBack(l lease, err error) {
	pg, said := errors.AsType[*pgconn.PgError](err)
	if err == nil {
		p.done.Add(1)
	} else if said && pg.Code == "25006" {
		// Connected to what is a standby now. All connections are: let them find the primary.
		p.pool.Reset()
	}
	if l.visit != nil {
		l.visit.leave(l.sign(err))
	}
	if errors.Is(err, errHangs) && l.conn.Conn().IsClosed() {
		// Its place in the pool is free now, and not when the server has ended what it hangs in.
		l.conn.Hijack()
		return
	}
	s := sessionOf(l.conn.Conn().PgConn())
	s.warned = ""
	p.bound(l.conn, false)
	if s.astray {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		_ = l.conn.Conn().Close(ctx) // nothing is lost with it
	}
	l.conn.Release()
}

// sign gives what the outcome err says of the part of the database that was visited.
func (l lease) sign(err error) sign {
	pg, said := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.Is(err, errDoubt):
		return refused
	case err == nil, l.whole:
		return served
	case !said, pg.Code == "57014": // a statement that was ended for its time says nothing of who was asked
		return nothing
	case partLost(pg):
		return refused
	}
	return answered
}

// Query runs sql and gives its rows to read, which loops over rows.Next and takes what it needs: the
// values, and bytes of RawValues, are valid until the next row. It need neither close the rows nor ask
// rows.Err; both is done here.
//
// When the server has lost the prepared statement, a migration changed what it gives, or a table was
// exchanged for another of its name meanwhile, read is called a second time; the first saw no row.
func (p *Pool) Query(ctx context.Context, read func(rows pgx.Rows) error, sql string, args ...any) error {
	return Fault(p.query(ctx, read, sql, args))
}

func (p *Pool) query(ctx context.Context, read func(rows pgx.Rows) error, sql string, args []any) error {
	brief, args := hinted(args)
	if brief && p.together(ctx) {
		return p.queryBriefly(ctx, read, sql, args)
	}
	return p.queryAlone(ctx, read, sql, args)
}

// queryAlone runs a statement over a connection that it waits for.
func (p *Pool) queryAlone(ctx context.Context, read func(rows pgx.Rows) error, sql string, args []any) error {
	l, err := p.borrow(ctx, projectOf(args))
	if err != nil {
		return err
	}
	return p.queryOver(l, read, sql, args)
}

// queryOver runs a statement over a connection, and gives that back.
func (p *Pool) queryOver(l lease, read func(rows pgx.Rows) error, sql string, args []any) error {
	// The outcome of a read that panics is not known.
	outcome := errPanicked
	defer func() { p.giveBack(l, outcome) }()
	first := &firstRow{}
	tag, whole, err := queryOn(l.ctx, l.conn, first.reader(read), sql, args)
	if !first.seen && (stalePlan(err) || exchanged(err)) {
		tag, whole, err = queryOn(l.ctx, l.conn, read, sql, args) // pgx prepares anew after any error
	}
	l.whole = whole
	outcome = l.meaning(tag, err)
	return outcome
}

// firstRow notes whether there was a row: what failed behind one can not be read again.
type firstRow struct {
	pgx.Rows
	seen bool
}

func (f *firstRow) reader(read func(pgx.Rows) error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		f.Rows = rows
		return read(f)
	}
}

// Next goes on to the next row.
func (f *firstRow) Next() bool {
	next := f.Rows.Next()
	f.seen = f.seen || next
	return next
}

var errPanicked = errors.New("panicked")

// queryOn runs sql on conn. whole says whether the server gave its whole answer: then err is read's own.
func queryOn(ctx context.Context, conn *pgxpool.Conn, read func(rows pgx.Rows) error, sql string, args []any) (tag pgconn.CommandTag, whole bool, err error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return pgconn.CommandTag{}, false, err
	}
	defer rows.Close() // also when read panics: the connection goes back in a known state
	err = read(rows)
	rows.Close()
	if rows.Err() != nil {
		return pgconn.CommandTag{}, false, rows.Err()
	}
	return rows.CommandTag(), true, err
}

// stalePlan tells whether a prepared statement failed before its first row for being out of date.
func stalePlan(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	// 0A000 is "cached plan must not change result type" among other things: those fail again.
	return ok && (pg.Code == "26000" || pg.Code == "0A000")
}

// exchanged tells whether a statement failed by an internal error of the server (XX000). A statement that
// was read while a table was about to be exchanged for another of its name, as when it is distributed, looks
// for the one that is gone: "could not open relation with OID …" has no state of its own.
func exchanged(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "XX000"
}

// QueryRow runs sql and scans its first row into dest; [pgx.ErrNoRows] when there is none.
func (p *Pool) QueryRow(ctx context.Context, dest []any, sql string, args ...any) error {
	return p.Query(ctx, func(rows pgx.Rows) error {
		if !rows.Next() {
			return pgx.ErrNoRows
		}
		return rows.Scan(dest...)
	}, sql, args...)
}

// Exec runs sql, one statement, and tells what it did.
func (p *Pool) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	l, err := p.borrow(ctx, projectOf(args))
	if err != nil {
		return pgconn.CommandTag{}, Fault(err)
	}
	tag, err := l.conn.Exec(l.ctx, sql, args...)
	if stalePlan(err) {
		tag, err = l.conn.Exec(l.ctx, sql, args...)
	}
	err = l.meaning(tag, err)
	p.giveBack(l, err)
	return tag, Fault(err)
}

// InTx runs do in a transaction (read committed), commits when it returns nil and rolls back otherwise,
// also when it panics. An [apierr.Unavailable] from here may mean that the commit's answer was lost:
// what do does should be idempotent.
func (p *Pool) InTx(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	return Fault(p.inTx(ctx, "", do))
}

// InProjectTx is [Pool.InTx] for what is all of one project.
func (p *Pool) InProjectTx(ctx context.Context, projectID string, do func(ctx context.Context, tx pgx.Tx) error) error {
	return Fault(p.inTx(ctx, projectID, do))
}

func (p *Pool) inTx(ctx context.Context, projectID string, do func(ctx context.Context, tx pgx.Tx) error) error {
	l, err := p.borrow(ctx, projectID)
	if err != nil {
		return err
	}
	outcome := errPanicked
	defer func() { p.giveBack(l, outcome) }()
	err = pgx.BeginFunc(l.ctx, l.conn, func(tx pgx.Tx) error { return do(l.ctx, tx) })
	outcome = l.meaning(pgconn.CommandTag{}, err)
	return outcome
}

// Ping asks the server for a sign of life.
func (p *Pool) Ping(ctx context.Context) error {
	_, err := p.Exec(ctx, "-- ping")
	return err
}

// Health tells whether the database can be used, within the acquire time-out: a check for readiness. A
// pool that is full but getting on with it is in good health: taking it out of service would only
// move the load.
func (p *Pool) Health(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.options.AcquireTimeout+p.options.ConnectTimeout)
	defer cancel()
	before := p.done.Load()
	err := p.Ping(ctx)
	if errors.Is(err, errNoConnection) && p.done.Load() > before {
		return nil
	}
	return err
}
