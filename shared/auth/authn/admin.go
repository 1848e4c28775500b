package authn

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/auth/rediskeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/redis/redisdb"
)

// Migrate migrates the keys' database with the role of cfg.MigrateURL, which owns the database. Migrate grants the
// roles of cfg.DatabaseURL and cfg.AdminURL, if set, the rights that the roles need. Several pods may call Migrate at
// the same time. The error is a [*config.Fault] if cfg.MigrateURL is not set.
func Migrate(ctx context.Context, cfg auth.Config, log *slog.Logger) error {
	if cfg.MigrateURL.IsZero() {
		return config.Invalid("AUTH_MIGRATE_DATABASE_URL", "", pgdb.URLRule)
	}
	roles := map[migrate.Role]string{
		migrate.Reader: migrate.UserOf(cfg.DatabaseURL.Reveal()),
		migrate.Admin:  migrate.UserOf(cfg.AdminURL.Reveal()),
	}
	return migrate.Up(ctx, cfg.MigrateURL, pgkeys.Schema(), roles, log)
}

// Admin mints, rotates and revokes keys. If there is a Redis, Admin also invalidates a changed key's copy there.
type Admin struct {
	*pgkeys.Admin

	pool  *pgdb.Pool
	redis *redisdb.Client // nil: there is no Redis
}

// OpenAdmin returns an Admin with the role of cfg.AdminURL. The error is a [*config.Fault] if cfg.AdminURL is not set.
// The caller calls Close at the end.
func OpenAdmin(ctx context.Context, cfg auth.Config, o Options) (*Admin, error) {
	o.complete()
	o.Pool.Name = "auth admin"
	if cfg.AdminURL.IsZero() {
		return nil, config.Invalid("AUTH_ADMIN_DATABASE_URL", "", pgdb.URLRule)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	pool, err := pgdb.Open(ctx, cfg.AdminURL, o.Pool)
	if err != nil {
		return nil, err
	}
	a := &Admin{pool: pool}
	var copies pgkeys.Invalidator
	if cfg.Redis.Enabled() {
		if a.redis, err = redisdb.Open(cfg.Redis, redisdb.Options{Log: o.Log, Tracer: o.Tracer}); err != nil {
			return nil, errors.Join(err, a.Close())
		}
		copies = rediskeys.NewInvalidator(redisdb.Commands(a.redis))
	}
	a.Admin = pgkeys.NewAdmin(pool, copies, time.Now, o.Log)
	return a, nil
}

// Close closes the connections to the keys' database and to Redis. Close waits without limit for connections to the
// database that are in use.
func (a *Admin) Close() error {
	var err error
	if a.redis != nil {
		err = a.redis.Close()
	}
	a.pool.Close()
	return err
}
