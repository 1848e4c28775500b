package pgdb

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/lectern-dev/lectern/shared/config"
)

// Options configures a [Pool]. All pools of a process take the same settings from the environment. The URL may
// configure its own connections further, as pgx reads it (sslmode, several hosts, target_session_attrs,
// connect_timeout, default_query_exec_mode).
type Options struct {
	// The most connections that a pool opens. 0 takes 4 for each CPU that the process may use, at least 8. The pools
	// of all replicas together must stay below the server's max_connections.
	MaxConns int32 `env:"DATABASE_MAX_CONNS" envDefault:"0"`

	// How long a request waits for a connection when all are in use; it then gets 503.
	AcquireTimeout time.Duration `env:"DATABASE_ACQUIRE_TIMEOUT" envDefault:"1s"`

	// The longest time that a statement or transaction runs. Postgres ends the statement; if Postgres hangs, the service
	// closes the connection a second later. 0: the role's own settings of statement_timeout and jit apply, as poolers
	// require, and the service ends a statement after 30 s. Otherwise the service turns jit off.
	StatementTimeout time.Duration `env:"STATEMENT_TIMEOUT" envDefault:"30s"`

	// Name identifies the connections to the server and in metrics, for example "entries".
	Name string `env:"-"`

	// TracerProvider records a span for each statement, without its text and arguments. Nil or a no-op
	// provider: no tracing.
	TracerProvider trace.TracerProvider `env:"-"`

	// MeterProvider collects the pool's metrics. Nil: nothing is measured.
	MeterProvider metric.MeterProvider `env:"-"`

	// Attach extends the pool and its configuration before it opens. Set it to citus.Attach for a database
	// that may be a Citus cluster. It is a hook because package citus imports this package. Nil: plain Postgres.
	Attach func(p *Pool, o Options, cfg *pgxpool.Config) `env:"-"`
}

const (
	// maxConnLifetime is the age at which the pool replaces a connection, plus up to a tenth. After a failover,
	// connections spread over the servers again within that time. To open a connection takes milliseconds.
	maxConnLifetime = 30 * time.Minute

	// maxConnIdleTime is how long the pool keeps an idle connection. The time is longer than the pauses of interactive
	// use, and short enough that a replica gives back the connections of a peak.
	maxConnIdleTime = 5 * time.Minute

	// connectTimeout is how long it may take to open a connection, including name look-up and TLS, unless the URL has a
	// connect_timeout. A server that is up answers in that time.
	connectTimeout = 3 * time.Second
)

// Validate reports every setting that is out of range, as the fault of its variable.
func (o Options) Validate() error {
	var faults []error
	if o.MaxConns < 0 || o.MaxConns > 10_000 {
		faults = append(faults, config.Invalid("DATABASE_MAX_CONNS", o.MaxConns, "0 to 10000"))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"DATABASE_ACQUIRE_TIMEOUT", o.AcquireTimeout, time.Millisecond},
		{"STATEMENT_TIMEOUT", o.StatementTimeout, 0},
	} {
		const most = 24 * time.Hour
		if d.value < d.least || d.value > most {
			faults = append(faults, config.Invalid(d.name, d.value, fmt.Sprintf("%v to %v", d.least, most)))
		}
	}
	return errors.Join(faults...)
}

// withDefaults returns o with the defaults in the place of zero values that are not valid, so that Options{} works.
func (o Options) withDefaults() Options {
	if o.MaxConns == 0 {
		o.MaxConns = max(8, 4*int32(runtime.GOMAXPROCS(0)))
	}
	o.AcquireTimeout = cmp.Or(o.AcquireTimeout, time.Second)
	o.Name = cmp.Or(o.Name, "lectern")
	return o
}

// configure sets the limits, parameters and tracer of o in cfg, the configuration of pgx.
func (o Options) configure(cfg *pgxpool.Config) {
	cfg.MaxConns = o.MaxConns
	cfg.MaxConnLifetime = maxConnLifetime
	cfg.MaxConnLifetimeJitter = maxConnLifetime / 10
	cfg.MaxConnIdleTime = maxConnIdleTime
	cfg.PingTimeout = o.AcquireTimeout
	conn := cfg.ConnConfig
	conn.ConnectTimeout = cmp.Or(conn.ConnectTimeout, connectTimeout)
	conn.RuntimeParams["application_name"] = o.Name
	conn.RuntimeParams["timezone"] = "UTC" // Raw parses times in text format as UTC
	if o.StatementTimeout > 0 {
		conn.RuntimeParams["statement_timeout"] = fmt.Sprint(o.StatementTimeout.Milliseconds())
		// Postgres would compile the insights to machine code, which takes longer than they run.
		conn.RuntimeParams["jit"] = "off"
	}
	if tracing(o.TracerProvider) {
		conn.Tracer = otelpgx.NewTracer(
			otelpgx.WithTracerProvider(o.TracerProvider),
			otelpgx.WithMeterProvider(metricnoop.NewMeterProvider()), // the HTTP and pool figures say enough
			otelpgx.WithDisableSQLStatementInAttributes(),
		)
	}
}

func tracing(p trace.TracerProvider) bool {
	if p == nil {
		return false
	}
	_, off := p.(tracenoop.TracerProvider)
	return !off
}
