package pgdb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"

	"github.com/lectern-dev/lectern/shared/config"
)

// ErrNoConnection is the cause of a 503 when the pool had no free connection in time. All connections are in use, or
// the pool cannot open a new one.
var ErrNoConnection error = noConnection{}

type noConnection struct{}

func (noConnection) Error() string { return "no database connection in time" }

// Timeout returns true: as in [net.Error], the error is a time-out.
func (noConnection) Timeout() bool { return true }

// grace is how much later than the server's own time-out the pool abandons a statement.
const grace = time.Second

// ownTimeout is how long a statement may run if [Options.StatementTimeout] is 0.
const ownTimeout = 30 * time.Second

// Querier runs statements and reads their rows as [Pool.Query] does. A Querier is a [Pool], or a set of standbys, which
// accepts only reading statements.
type Querier interface {
	Query(ctx context.Context, read func(rows pgx.Rows) error, sql string, args ...any) error
}

// Pinned returns a Querier for a read in several statements. If q spreads statements over several databases, the result
// keeps using one of these databases. So no part is read from older data than an earlier part. Only one goroutine may
// use the result at a time.
func Pinned(q Querier) Querier {
	if several, ok := q.(interface{ Pinned() Querier }); ok {
		return several.Pinned()
	}
	return q
}

// Pool is a pool of connections to one database as one role. Several goroutines may call the methods of a Pool at the
// same time. Each method gives its connection back before it returns, and returns errors that have passed [Fault].
type Pool struct {
	pool      *pgxpool.Pool
	options   Options
	rotates   bool                    // the password is in a file, and may change
	confirm   atomic.Pointer[Confirm] // nil on plain Postgres
	completed atomic.Int64
}

// Open returns a pool for the database at url. The pool connects on first use: a server that is down is no error here.
// Each new connection reads the password file of url, if url has one. A zero field of o takes its default if 0 is not a
// valid value. The caller closes the pool.
func Open(ctx context.Context, url config.ServerURL, o Options) (*Pool, error) {
	if url.IsZero() {
		return nil, errors.New("open a database pool: no URL given")
	}
	o = o.withDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	cfg, problem := parse(url)
	if problem != "" {
		return nil, errors.New("the database URL " + problem)
	}
	o.configure(cfg)
	p := &Pool{options: o, rotates: url.HasPasswordFile()}
	if p.rotates {
		cfg.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) (err error) {
			conn.Password, err = url.Password()
			return err
		}
	}
	if o.Attach != nil {
		o.Attach(p, o, cfg)
	}
	var err error
	if p.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, fmt.Errorf("open a database pool: %w", err)
	}
	if o.MeterProvider != nil {
		err := otelpgx.RecordStats(p.pool, otelpgx.WithStatsMeterProvider(o.MeterProvider),
			// The default name contains host and port, which would make one series for each address that the database
			// ever had.
			otelpgx.WithStatsAttributes(semconv.DBClientConnectionPoolName(o.Name)))
		if err != nil {
			p.pool.Close()
			return nil, fmt.Errorf("measure the database pool: %w", err)
		}
	}
	return p, nil
}

// URLRule describes the URL of a database, for error messages.
const URLRule = "postgres://user:password@host:port/database?sslmode=…"

// CheckURL returns the [*config.Fault] of variable if [Open] would refuse one of urls, the value of variable. Otherwise
// CheckURL returns nil, as it does for a URL that is not set.
func CheckURL(variable string, urls ...config.ServerURL) error {
	for _, url := range urls {
		if url.IsZero() {
			continue
		}
		if _, problem := parse(url); problem != "" {
			return &config.Fault{Variable: variable, Problem: problem}
		}
	}
	return nil
}

// parse returns the configuration of url, or what is wrong with url and what is allowed. The text has no URL, because
// the part that cannot be read may be the password.
func parse(url config.ServerURL) (cfg *pgxpool.Config, problem string) {
	cfg, err := pgxpool.ParseConfig(url.Reveal())
	switch {
	case err != nil:
		return nil, "cannot be read; allowed: " + URLRule
	case cfg.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeDescribeExec:
		return nil, "has default_query_exec_mode=describe_exec, which can return wrong rows through a pooler; " +
			"allowed: cache_statement, cache_describe, exec, simple_protocol"
	}
	return cfg, ""
}

// Close waits without limit until all connections are returned, and closes them. Package shutdown bounds the wait.
func (p *Pool) Close() { p.pool.Close() }

// Confirm decides the outcome of a statement in a distributed database. conn is the statement's connection, and err
// comes from the server or the network. The result is the error that the pool uses in the place of err.
type Confirm func(conn *pgconn.PgConn, tag pgconn.CommandTag, err error) error

// SetDistributed notes that the database's tables are distributed over several servers, and that c confirms outcomes.
// Package citus calls SetDistributed.
func (p *Pool) SetDistributed(c Confirm) { p.confirm.Store(&c) }

// Distributed reports whether tables are distributed over several servers. Package citus looks for Citus on new
// connections. Some statements that work on one server do not work on several.
func (p *Pool) Distributed() bool { return p.confirm.Load() != nil }

// Reset closes all connections. Reset closes a connection in use when the connection is returned.
func (p *Pool) Reset() { p.pool.Reset() }

// Completed returns how many statements and transactions have succeeded. A growing number shows that a full pool
// makes progress.
func (p *Pool) Completed() int64 { return p.completed.Load() }

// lease is a connection in use by one statement or transaction, with the context that bounds the statement.
type lease struct {
	*pgxpool.Conn
	pool    *Pool
	ctx     context.Context // of the statement, with its time-out
	cancel  context.CancelFunc
	settled bool
}

// acquire waits for a connection, at most for AcquireTimeout. The caller calls settle with the outcome of the
// statement, and release in any case. The error is ErrNoConnection if no connection was free.
func (p *Pool) acquire(ctx context.Context) (*lease, error) {
	wait, stop := context.WithTimeout(ctx, p.options.AcquireTimeout)
	defer stop()
	conn, err := p.pool.Acquire(wait)
	for p.rotates && loginFailed(err) && sleep(wait, loginPause) {
		conn, err = p.pool.Acquire(wait)
	}
	if err != nil {
		if ctx.Err() == nil && wait.Err() != nil && errors.Is(err, wait.Err()) {
			err = ErrNoConnection
		}
		return nil, refused(err)
	}
	l := &lease{Conn: conn, pool: p}
	l.ctx, l.cancel = context.WithTimeout(ctx, p.limit())
	return l, nil
}

// limit is how long the pool lets a statement or a transaction run.
func (p *Pool) limit() time.Duration {
	if p.options.StatementTimeout == 0 {
		return ownTimeout
	}
	return p.options.StatementTimeout + grace
}

// loginPause is the time after a failed log-in until the next attempt to get a connection. Postgres computes for
// milliseconds to refuse a password.
const loginPause = 100 * time.Millisecond

// loginFailed reports whether a new connection failed because the server refused the log-in, or because the password
// file cannot be read. While somebody changes the password, the server and the file differ, in Kubernetes for a minute
// or two. Then the connections that are open still work, and acquire waits for one of them, or for the file.
func loginFailed(err error) bool {
	if _, ok := errors.AsType[*config.Fault](err); ok {
		return true // the file cannot be read
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(pg.Code, "28") // invalid authorization specification
}

// sleep waits for d, and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// refused adds the remedy to the error of a pooler that refuses a parameter of [Options]. refused returns any other
// error unchanged.
func refused(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && strings.Contains(pg.Message, "startup parameter") {
		return fmt.Errorf("a pooler between the service and Postgres refuses statement_timeout or jit: set STATEMENT_TIMEOUT=0, with which the service itself ends a statement after %v: %w", ownTimeout, err)
	}
	return err
}

// settle records the outcome of the statement, as the server or the network returned it. settle returns the error to
// report, which is the result of the pool's [Confirm] if there is one.
func (l *lease) settle(tag pgconn.CommandTag, err error) error {
	l.settled = true
	if err == nil {
		l.pool.completed.Add(1)
	} else if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "25006" {
		// The server has become a standby: reconnect everywhere, to find the primary.
		l.pool.Reset()
	}
	if confirm := l.pool.confirm.Load(); confirm != nil {
		err = (*confirm)(l.Conn.Conn().PgConn(), tag, err)
	}
	return err
}

// release returns the connection to the pool. The pool closes a connection that is broken or in the middle of a result.
func (l *lease) release() {
	if !l.settled { // the caller panicked
		_ = l.settle(pgconn.CommandTag{}, errPanicked)
	}
	l.cancel()
	l.Release()
}

var errPanicked = errors.New("panicked")

// Query runs sql and passes its rows to read, which loops over rows.Next. Values, and bytes of RawValues, are valid
// until the next row. Query closes the rows and checks rows.Err.
//
// If the server has lost the prepared statement, or the statement's result has changed, Query runs sql again. Query may
// then call read a second time; the first call saw no row. The error of read is returned only if the statement
// succeeds.
func (p *Pool) Query(ctx context.Context, read func(rows pgx.Rows) error, sql string, args ...any) error {
	l, err := p.acquire(ctx)
	if err != nil {
		return Fault(err)
	}
	defer l.release()
	var rows WatchedRows
	var readErr error
	for attempt := 1; attempt <= 2; attempt++ {
		if rows.Rows, err = l.Query(l.ctx, sql, args...); err == nil {
			readErr = read(&rows)
			rows.Close()
			err = rows.Err()
		}
		if rows.Seen || !outdated(err) {
			break
		}
	}
	if err = l.settle(rows.CommandTag(), err); err == nil {
		err = readErr
	}
	return Fault(err)
}

// WatchedRows notes in Seen whether a result had a row. A statement that fails after a row must not be repeated.
type WatchedRows struct {
	pgx.Rows
	Seen bool
}

// Next goes to the next row and reports whether there is one. At each row, Next sets Seen.
func (r *WatchedRows) Next() bool {
	next := r.Rows.Next()
	r.Seen = r.Seen || next
	return next
}

// outdated reports whether a statement may have failed because it was planned for an earlier state of the database. The
// statement can be repeated, because pgx prepares a statement again after any error.
func outdated(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch pg.Code {
	case "26000", // a pooler or a failover lost the prepared statement
		"0A000", // "cached plan must not change result type", and others
		"XX000": // "could not open relation with OID": a table was distributed
		return true
	}
	return false
}

// QueryRow runs sql and scans the first row of the result into dest. The error is [pgx.ErrNoRows] if there is no row.
func (p *Pool) QueryRow(ctx context.Context, dest []any, sql string, args ...any) error {
	return p.Query(ctx, func(rows pgx.Rows) error {
		if !rows.Next() {
			return pgx.ErrNoRows
		}
		return rows.Scan(dest...)
	}, sql, args...)
}

// Exec runs sql, which must be one statement, and returns its command tag. Exec reads no rows.
func (p *Pool) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	l, err := p.acquire(ctx)
	if err != nil {
		return pgconn.CommandTag{}, Fault(err)
	}
	defer l.release()
	tag, err := l.Exec(l.ctx, sql, args...)
	return tag, Fault(l.settle(tag, err))
}

// InTx runs do in a transaction (read committed). InTx commits if do returns nil. Otherwise InTx rolls back, even if do
// panics. The error [apierr.Unavailable] may mean that the answer to the commit was lost: do should be idempotent.
//
// If the machine of this process is lost, Postgres ends the idle transaction after the longest time that a transaction may
// take. Otherwise the locks of the transaction would stay until the keepalive of the connection fails: two hours by default.
func (p *Pool) InTx(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	l, err := p.acquire(ctx)
	if err != nil {
		return Fault(err)
	}
	defer l.release()
	err = pgx.BeginFunc(l.ctx, l, func(tx pgx.Tx) error {
		// A statement of its own: poolers refuse a parameter of the connection.
		if _, err := tx.Exec(l.ctx, fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", p.limit().Milliseconds())); err != nil {
			return err
		}
		return do(l.ctx, tx)
	})
	return Fault(l.settle(pgconn.CommandTag{}, err))
}

// Ping sends an empty statement to the server, and returns an error if the server does not answer in time.
func (p *Pool) Ping(ctx context.Context) error {
	_, err := p.Exec(ctx, "-- ping")
	return err
}

// Health returns nil if the database can be used, for the readiness of a process. A full pool that makes progress is
// healthy: taking the process out of service would only move its load.
func (p *Pool) Health(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.options.AcquireTimeout+p.pool.Config().ConnConfig.ConnectTimeout)
	defer cancel()
	before := p.Completed()
	err := p.Ping(ctx)
	if errors.Is(err, ErrNoConnection) && p.Completed() > before {
		return nil
	}
	return err
}
