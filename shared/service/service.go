// Package service is the common base of all data services. The package owns the configuration that these services
// share, the order in which the parts of a service start and stop, and the command line. A service adds its schema
// and its routes.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/ingest"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/postgres/citus"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/postgres/standbys"
	"github.com/lectern-dev/lectern/shared/shutdown"
	"github.com/lectern-dev/lectern/shared/telemetry"
	"github.com/lectern-dev/lectern/shared/trustedkeys"
)

// Config has the settings that all data services share. A service embeds Config in its own configuration.
type Config struct {
	// The service's database, as the role that reads. Required to serve.
	DatabaseURL config.ServerURL `env:"DATABASE_URL"`

	// Standbys of DATABASE_URL, as the role that reads, comma-separated, each with one host. Reads of records use them
	// while they answer and are at most ten seconds old. Not set: all reads use DATABASE_URL.
	ReadDatabaseURLs []config.ServerURL `env:"READ_DATABASE_URL"`

	// The same database, as the role that writes ingested data. Not set: the service ingests nothing.
	IngestDatabaseURL config.ServerURL `env:"INGEST_DATABASE_URL"`

	// The same database, as the role that removes data. migrate grants the role its rights. Not set: requests to remove
	// data get 503.
	RemoveDatabaseURL config.ServerURL `env:"REMOVE_DATABASE_URL"`

	// The same database, as its owner. Required to migrate.
	MigrateDatabaseURL config.ServerURL `env:"MIGRATE_DATABASE_URL"`

	// Whether serve migrates first, as the command migrate does.
	MigrateOnStart bool `env:"MIGRATE_ON_START" envDefault:"false"`

	// The keys for ingest, comma-separated, each of 16 to 256 visible ASCII characters. A data service accepts any of them,
	// and without one it refuses ingest. The operator sends the first to the region service, and needs one with
	// REGION_INTERNAL_URL.
	IngestKeys []config.Secret `env:"INGEST_API_KEYS"`

	// The keys of administrators: name=key, comma-separated, each key of 16 to 256 visible ASCII characters. They remove data
	// and, at region, administer API keys. The audit log has the name. Not set: both are refused.
	AdminKeys []config.Secret `env:"ADMIN_API_KEYS"`

	HTTP      httpserver.Config
	Auth      auth.Config
	Pool      pgdb.Options
	Ingest    ingest.Options
	Reads     limits.ReadOptions
	Telemetry telemetry.Config

	// LogOutput takes the log. Nil: standard error.
	LogOutput io.Writer `env:"-"`

	// StopTimeout bounds the shutdown after the last request. Only tests set StopTimeout, because a busy machine may
	// do nothing for seconds. 0: 10 s.
	StopTimeout time.Duration `env:"-"`
}

// Validate reports URLs of databases and an ADMIN_API_KEYS that cannot be parsed, and an INGEST_API_KEYS with a key that
// is not allowed.
func (c Config) Validate() error {
	_, err := auth.ParseAdminKeys(c.AdminKeys)
	return errors.Join(
		pgdb.CheckURL("DATABASE_URL", c.DatabaseURL), pgdb.CheckURL("READ_DATABASE_URL", c.ReadDatabaseURLs...),
		pgdb.CheckURL("INGEST_DATABASE_URL", c.IngestDatabaseURL), pgdb.CheckURL("REMOVE_DATABASE_URL", c.RemoveDatabaseURL),
		pgdb.CheckURL("MIGRATE_DATABASE_URL", c.MigrateDatabaseURL), err, trustedkeys.Check("INGEST_API_KEYS", c.IngestKeys))
}

// Require reports the databases that the command serve or migrate needs and that are not set.
func (c Config) Require(command string) error {
	var faults []error
	need := func(variable string, url config.ServerURL) {
		if url.IsZero() {
			faults = append(faults, config.Invalid(variable, "", pgdb.URLRule))
		}
	}
	if command == "serve" {
		need("DATABASE_URL", c.DatabaseURL)
		need("AUTH_DATABASE_URL", c.Auth.DatabaseURL)
	}
	if command == "migrate" || c.MigrateOnStart {
		need("MIGRATE_DATABASE_URL", c.MigrateDatabaseURL)
	}
	return errors.Join(faults...)
}

// Definition has the parts in which one data service differs from the others, for [Run] and [Migrate].
type Definition struct {
	// Name is the service's name in logs, spans, connections and migrations.
	Name string
	// Schema has the migrations of the service's database and the rights of its roles.
	Schema migrate.Schema
	// AdministersKeys opens [Parts.KeyAdmin] if AUTH_ADMIN_DATABASE_URL is set.
	AdministersKeys bool
	// Routes returns the routes of the service's public listener and of its internal listener. Routes may start
	// background work by p.Go.
	Routes func(p *Parts) (public, internal *httpapi.Router)
}

// Parts has the dependencies that [Run] opens for the routes of a service.
type Parts struct {
	stack *shutdown.Stack

	Telemetry *telemetry.Telemetry
	Keys      *authn.Authenticator
	// KeyAdmin mints and revokes keys. KeyAdmin is nil where AUTH_ADMIN_DATABASE_URL is not set, and in services that
	// do not administer keys.
	KeyAdmin *authn.Admin
	// Primary is the pool of the role that reads, on the primary: for reads that must see the latest writes.
	Primary *pgdb.Pool
	// Read reads from the standbys while they are usable, and otherwise from Primary.
	Read *standbys.Reads
	// Write is the pool of the role that ingests data, or nil if the service ingests nothing.
	Write *pgdb.Pool
	// Remove is the pool of the role that removes data, or nil if REMOVE_DATABASE_URL is not set.
	Remove *pgdb.Pool
	// IngestKeys are the INGEST_API_KEYS, which protect the routes of ingest.
	IngestKeys *auth.SharedKeys
	// AdminKeys are the ADMIN_API_KEYS, which protect the routes of administrators.
	AdminKeys *auth.AdminKeys
	// Stopping is a context that ends when the service accepts no more requests on its public address. Requests that
	// wait for news should then end.
	Stopping context.Context
}

// Go runs background work until the service has served its last request. The service then cancels the context of run
// and waits for run to return, up to Config.StopTimeout, before it closes the pools.
func (p *Parts) Go(run func(context.Context)) { p.stack.Go(run) }

// Run starts the parts of a service, serves until ctx ends, and then shuts down gracefully. If MIGRATE_ON_START is set,
// Run migrates the databases first. The error has a [*config.Fault] for each required setting that is not set.
func Run(ctx context.Context, cfg Config, d Definition) (err error) {
	if err := cfg.Require("serve"); err != nil {
		return err
	}
	admins, err := auth.ParseAdminKeys(cfg.AdminKeys)
	if err != nil {
		return err
	}
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: d.Name, Config: cfg.Telemetry, LogOutput: cfg.LogOutput})
	if err != nil {
		return err
	}
	var stack shutdown.Stack
	defer func() { err = errors.Join(err, stack.Stop(cmp.Or(cfg.StopTimeout, shutdown.Timeout))) }()
	stack.Add(tel.Shutdown)

	if cfg.MigrateOnStart {
		if err := migrateBoth(ctx, cfg, d, tel); err != nil {
			return err
		}
	}
	pool := cfg.Pool // of all databases but the keys': authn completes cfg.Pool by itself
	pool.Name, pool.Attach = d.Name, citus.Attach
	pool.TracerProvider, pool.MeterProvider = tel.TracerProvider, tel.MeterProvider
	open := func(url config.ServerURL, name string) (*pgdb.Pool, error) {
		options := pool
		options.Name = name
		p, err := pgdb.Open(ctx, url, options)
		if err == nil {
			stack.Add(closing(name, p.Close))
		}
		return p, err
	}
	stopping, stop := context.WithCancel(context.Background())
	defer stop()
	parts := &Parts{stack: &stack, Telemetry: tel, IngestKeys: auth.NewSharedKeys(cfg.IngestKeys), AdminKeys: admins, Stopping: stopping}
	if parts.Primary, err = open(cfg.DatabaseURL, d.Name); err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	parts.Read, err = standbys.Open(ctx, parts.Primary, standbys.Options{
		Standbys: cfg.ReadDatabaseURLs, Pool: pool, Log: tel.Logger,
	})
	if err != nil {
		return fmt.Errorf("READ_DATABASE_URL: %w", err)
	}
	stack.Add(closing("the standbys", parts.Read.Close))
	if !cfg.IngestDatabaseURL.IsZero() {
		if parts.Write, err = open(cfg.IngestDatabaseURL, d.Name+" ingest"); err != nil {
			return fmt.Errorf("INGEST_DATABASE_URL: %w", err)
		}
	}
	if !cfg.RemoveDatabaseURL.IsZero() {
		if parts.Remove, err = open(cfg.RemoveDatabaseURL, d.Name+" remove"); err != nil {
			return fmt.Errorf("REMOVE_DATABASE_URL: %w", err)
		}
	}
	keys := authn.Options{Log: tel.Logger, Tracer: tel.TracerProvider, Meter: tel.MeterProvider, Pool: cfg.Pool}
	if parts.Keys, err = authn.Open(ctx, cfg.Auth, keys); err != nil {
		return err
	}
	stack.Add(parts.Keys.Close)
	if d.AdministersKeys && !cfg.Auth.AdminURL.IsZero() {
		if parts.KeyAdmin, err = authn.OpenAdmin(ctx, cfg.Auth, keys); err != nil {
			return fmt.Errorf("AUTH_ADMIN_DATABASE_URL: %w", err)
		}
		stack.Add(func(context.Context) error { return parts.KeyAdmin.Close() })
	}

	reads := limits.NewReads(cfg.Reads, func(ctx context.Context) string { return httpapi.InfoFrom(ctx).ProjectID })
	if err := reads.Measure(tel.MeterProvider); err != nil {
		return err
	}

	public, internal := d.Routes(parts)
	server, err := httpserver.New(httpserver.Options{
		Service: d.Name, Config: cfg.HTTP, Telemetry: tel, Public: public, Internal: internal, Checks: checks(parts, d.Schema), Stopping: stop,
		Context: func(ctx context.Context) context.Context { return lists.WithLimiter(ctx, reads) },
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// closing returns a function that calls stop to close the pool called name. stop waits for connections that are in
// use. The function gives up when its context ends.
func closing(name string, stop func()) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := shutdown.Within(ctx, stop); err != nil {
			return fmt.Errorf("close the pool of %s: connections are still in use: %w", name, err)
		}
		return nil
	}
}

// selectMigrated selects whether the table that records the migrations exists. Any database role may run the
// statement.
const selectMigrated = `SELECT to_regclass($1) IS NOT NULL`

// checks returns the checks of /readyz. A database that fails after the first contact does not make a service unready.
// Clients then get an answer with Retry-After, and not the error page of a load balancer without replicas. A database
// without its tables makes a service unready, because that service cannot recover by itself.
func checks(p *Parts, schema migrate.Schema) []httpserver.Check {
	reached := false // the server asks one at a time
	list := []httpserver.Check{
		{Name: "started", Required: true, Probe: func(ctx context.Context) error {
			if reached {
				return nil
			}
			err := p.Read.Health(ctx)
			reached = err == nil
			return err
		}},
		{Name: "postgres", Probe: p.Primary.Health},
		{Name: "schema", Required: true, Probe: func(ctx context.Context) error {
			var migrated bool
			err := p.Primary.QueryRow(ctx, []any{&migrated}, selectMigrated, schema.Table())
			if err == nil && !migrated {
				return httpserver.Cause("the database has no schema: run migrate")
			}
			return nil // the check of postgres reports a database that does not answer
		}},
		{Name: "keys", Probe: p.Keys.Ready},
	}
	if all, _ := p.Read.Standbys(); all > 0 {
		list = append(list, httpserver.Check{Name: "standbys", Probe: func(context.Context) error {
			if all, serving := p.Read.Standbys(); serving < all {
				return httpserver.Cause(fmt.Sprintf("%d of %d are left out", all-serving, all))
			}
			return nil
		}})
	}
	if p.Keys.Redis != nil {
		list = append(list, httpserver.Check{Name: "redis", Probe: p.Keys.Redis.Reach})
	}
	return list
}

// Migrate migrates the service's database, and the key database if AUTH_MIGRATE_DATABASE_URL is set. Several pods may
// call Migrate at once. The error is a [*config.Fault] if MIGRATE_DATABASE_URL is not set.
func Migrate(ctx context.Context, cfg Config, d Definition) (err error) {
	if err := cfg.Require("migrate"); err != nil {
		return err
	}
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: d.Name + " migrate", Config: cfg.Telemetry, LogOutput: cfg.LogOutput})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Shutdown(context.WithoutCancel(ctx))) }()
	return migrateBoth(ctx, cfg, d, tel)
}

func migrateBoth(ctx context.Context, cfg Config, d Definition, tel *telemetry.Telemetry) error {
	roles := map[migrate.Role]string{
		migrate.Reader:  migrate.UserOf(cfg.DatabaseURL.Reveal()),
		migrate.Ingest:  migrate.UserOf(cfg.IngestDatabaseURL.Reveal()),
		migrate.Remover: migrate.UserOf(cfg.RemoveDatabaseURL.Reveal()),
	}
	if err := migrate.Up(ctx, cfg.MigrateDatabaseURL, d.Schema, roles, tel.Logger); err != nil {
		return err
	}
	if cfg.Auth.MigrateURL.IsZero() {
		return nil
	}
	return authn.Migrate(ctx, cfg.Auth, tel.Logger)
}
