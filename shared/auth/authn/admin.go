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

// Migrate migrates the keys' database with the owner's role. It grants the roles of cfg.DatabaseURL and cfg.AdminURL
// the rights that they need, if these are set. Each pod may call Migrate at its start, also several pods at once.
func Migrate(ctx context.Context, cfg auth.Config, log *slog.Logger) error {
	if cfg.MigrateURL.IsZero() {
		return &config.Fault{Variable: "AUTH_MIGRATE_DATABASE_URL", Problem: "is not set, and is required"}
	}
	roles := map[migrate.Role]string{
		migrate.Reader: migrate.UserOf(cfg.DatabaseURL.Reveal()),
		migrate.Admin:  migrate.UserOf(cfg.AdminURL.Reveal()),
	}
	return migrate.Up(ctx, cfg.MigrateURL.Reveal(), pgkeys.Schema(), roles, log)
}

// Admin mints, rotates and revokes keys. It replaces the copies of changed keys in Redis.
type Admin struct {
	*pgkeys.Admin

	pool  *pgdb.Pool
	redis *redisdb.Client // nil: there is no Redis
}

// OpenAdmin returns an Admin with the role of cfg.AdminURL. The caller closes it.
func OpenAdmin(ctx context.Context, cfg auth.Config, o Options) (*Admin, error) {
	o.complete()
	o.Pool.Name = "auth admin"
	if cfg.AdminURL.IsZero() {
		return nil, &config.Fault{Variable: "AUTH_ADMIN_DATABASE_URL", Problem: "is not set, and is required"}
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

// Close closes the connections.
func (a *Admin) Close() error {
	var err error
	if a.redis != nil {
		err = a.redis.Close()
	}
	a.pool.Close()
	return err
}
