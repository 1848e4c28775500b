// Package authn combines the parts of authentication for a service. The parts are the keys' database, the copies in
// Redis and in the process, the rates, and the background work.
package authn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/auth/rediskeys"
	"github.com/lectern-dev/lectern/shared/auth/tokens"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/postgres/citus"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/redis/redisdb"
	"github.com/lectern-dev/lectern/shared/shutdown"
)

const (
	// useInterval is how often the process writes to the database when keys were last used.
	useInterval = 30 * time.Second

	// maxLookups is how many look-ups of keys one process may have in flight: many thousand new keys a second.
	maxLookups = 64
)

// Options configures an [Authenticator] or an [Admin]: its log, traces, metrics and pool. The zero value is valid.
type Options struct {
	// Log receives the faults of background work. Default: nothing is logged.
	Log *slog.Logger

	// Tracer traces statements and commands. Default: nothing is traced.
	Tracer trace.TracerProvider

	// Meter receives the metrics that [Authenticator] lists, and those of the pool. Default: nothing is measured.
	Meter metric.MeterProvider

	// Pool configures the pool of connections to the keys' database. Open and OpenAdmin set the pool's name, providers
	// and Attach.
	Pool pgdb.Options
}

func (o *Options) complete() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Meter == nil {
		o.Meter = noop.NewMeterProvider()
	}
	o.Pool.Name = "auth"
	o.Pool.TracerProvider = o.Tracer
	o.Pool.MeterProvider = o.Meter
	o.Pool.Attach = citus.Attach
}

// Authenticator verifies API keys and limits rates for one process of a service. Authenticator measures:
//
//	lectern.key.lookups   look-ups of keys and tokens that the process has not cached or renews, by layer and outcome
//	lectern.issuer.up     1 while the signing keys of an issuer can be read, else 0, for each of TOKEN_ISSUERS
//	lectern.rate.limited  requests over their rate
//	lectern.redis.up      1 while Redis answers, else 0; no value without Redis
type Authenticator struct {
	// Guard protects operations.
	Guard *auth.Guard
	// Verifier verifies keys for Guard.
	Verifier *auth.Verifier
	// Limiter limits rates for Guard. Nil without Redis: no rate is limited.
	Limiter *limits.Limiter
	// Redis is the shared client, which Close closes, or nil without Redis.
	Redis *redisdb.Client

	pool   *pgdb.Pool
	uses   *auth.LastUse
	tokens *tokens.Verifier // nil without TOKEN_ISSUERS
	meters metric.Registration

	cancel     context.CancelFunc // stops background
	background sync.WaitGroup
	once       sync.Once
	closed     error
}

// Open returns an Authenticator. Open does not wait for Postgres or Redis: the Authenticator connects when they are up.
// Open fails if cfg is not valid. The caller closes the Authenticator.
func Open(ctx context.Context, cfg auth.Config, o Options) (_ *Authenticator, err error) {
	o.complete()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.DatabaseURL.IsZero() {
		return nil, config.Invalid("AUTH_DATABASE_URL", "", pgdb.URLRule)
	}
	a := &Authenticator{}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a.cancel = cancel
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open the authenticator: %w", err), a.Close(ctx))
		}
	}()

	if a.pool, err = pgdb.Open(background, cfg.DatabaseURL, o.Pool); err != nil {
		return nil, err
	}
	count, err := lookupCounter(o.Meter)
	if err != nil {
		return nil, err
	}
	store := pgkeys.NewStore(a.pool)
	a.uses = auth.NewLastUse(store, o.Log)
	var foreign *auth.ForeignKeys
	if cfg.ForeignKeys {
		foreign = auth.NewForeignKeys(store, o.Log)
		a.background.Go(func() { foreign.Run(background) })
	}
	var keys auth.Store = counted{store, count("postgres")}
	if cfg.Redis.Enabled() {
		a.Redis, err = redisdb.Open(cfg.Redis, redisdb.Options{Log: o.Log, Tracer: o.Tracer})
		if err != nil {
			return nil, err
		}
		keys = rediskeys.NewStore(redisdb.Commands(a.Redis), keys, rediskeys.Options{TTL: cfg.CacheTTL, Count: count("redis")})
		a.Limiter = limits.NewLimiter(redisdb.Script(redisdb.Commands(a.Redis), limits.TakeScript), limits.LimiterOptions{Log: o.Log})
	} else if cfg.RateLimit > 0 || cfg.AnonRateLimit > 0 {
		o.Log.WarnContext(ctx, "REDIS_URL is not set: no rate is limited")
	}
	var issuers *auth.Issuers
	if len(cfg.Issuers) > 0 {
		if a.tokens, err = tokens.NewVerifier(cfg.Issuers, cfg.EgressProxy, o.Log); err != nil {
			return nil, err
		}
		issuers = auth.NewIssuers(a.tokens, count("issuer"))
		a.background.Go(func() { a.tokens.Run(background) })
	}
	a.Verifier = auth.NewVerifier(keys, auth.VerifierOptions{
		Foreign: foreign, Issuers: issuers, Uses: a.uses,
		MaxLookups: maxLookups, LookupLimit: 2 * o.Pool.AcquireTimeout,
	})
	a.Guard = auth.NewGuard(a.Verifier, a.Limiter, cfg.KeyRate(), cfg.AnonymousRate())
	if a.meters, err = a.measure(o.Meter); err != nil {
		return nil, err
	}

	a.background.Go(func() { a.uses.Run(background, useInterval) })
	return a, nil
}

// Ready returns an error if the keys' database does not answer. Even then, keys with a copy in Redis or in the process
// are verified.
func (a *Authenticator) Ready(ctx context.Context) error { return a.pool.Health(ctx) }

// Close stops the background work, writes the last use of keys and closes the connections. ctx bounds the write and the
// wait for connections in use. The caller must end all requests before Close. A second call returns the error of the
// first.
func (a *Authenticator) Close(ctx context.Context) error {
	a.once.Do(func() {
		a.cancel()
		if a.Redis != nil {
			a.closed = a.Redis.Close()
		}
		if a.Verifier != nil {
			a.Verifier.Close()
		}
		a.background.Wait()
		if a.uses != nil {
			a.uses.Flush(ctx)
		}
		if a.meters != nil {
			a.closed = errors.Join(a.closed, a.meters.Unregister())
		}
		if a.pool != nil {
			if err := shutdown.Within(ctx, a.pool.Close); err != nil {
				a.closed = errors.Join(a.closed, fmt.Errorf("close the pool of the keys' database: connections are still in use: %w", err))
			}
		}
	})
	return a.closed
}
