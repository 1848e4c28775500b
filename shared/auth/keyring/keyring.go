// Package keyring combines the parts of key verification for a service. These are the keys' database, the copies in
// Redis and in the process, the rates, and the background work.
package keyring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/auth/rediskeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/pgcitus"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/ratelimit"
	"github.com/lectern-dev/lectern/shared/redisdb"
	"github.com/lectern-dev/lectern/shared/shutdown"
)

// Options configures a Keyring. The zero value is valid.
type Options struct {
	// Log receives the faults of background work. Default: nothing is logged.
	Log *slog.Logger

	// Tracer traces statements and commands. Default: nothing is traced.
	Tracer trace.TracerProvider

	// Meter receives the metrics that [Keyring] lists. Default: nothing is measured.
	Meter metric.MeterProvider

	// Pool configures the pool of connections to the keys' database. Open sets its name, providers and log.
	Pool pgdb.Options

	// Now is the clock. Default: time.Now.
	Now func() time.Time

	// UseInterval is how often the last use of keys is written. Default: 30 s.
	UseInterval time.Duration
}

func (o *Options) complete() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Meter == nil {
		o.Meter = noop.NewMeterProvider()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.UseInterval <= 0 {
		o.UseInterval = 30 * time.Second
	}
	o.Pool.Name = "auth"
	o.Pool.TracerProvider = o.Tracer
	o.Pool.MeterProvider = o.Meter
	o.Pool.Log = o.Log
	o.Pool.Attach = pgcitus.Attach
}

// Keyring verifies keys. It measures:
//
//	lectern.key.lookups{layer=redis|postgres, outcome=hit|miss|error}   look-ups of keys that the process has not cached
//	lectern.rate.limited                                                requests over their rate
//	lectern.redis.up                                                    1 when Redis answers, else 0
type Keyring struct {
	// Guard protects operations.
	Guard *auth.Guard
	// Verifier verifies keys for Guard.
	Verifier *auth.Verifier
	// Limiter limits rates for Guard.
	Limiter *ratelimit.Limiter
	// Redis is the shared client, or nil without Redis. Close closes it.
	Redis *redisdb.Client

	pool   *pgdb.Pool
	uses   *auth.LastUse
	meters metric.Registration

	cancel     context.CancelFunc // stops background
	background sync.WaitGroup
	once       sync.Once
	closed     error
}

// Open returns a Keyring. It does not wait for Postgres or Redis: the Keyring connects when they are up. The caller
// closes the Keyring.
func Open(ctx context.Context, cfg auth.Config, o Options) (_ *Keyring, err error) {
	o.complete()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.DatabaseURL.IsZero() {
		return nil, &config.Fault{Variable: "AUTH_DATABASE_URL", Problem: "is not set, and is required"}
	}
	k := &Keyring{}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k.cancel = cancel
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open the keyring: %w", err), k.Close(ctx))
		}
	}()

	if k.pool, err = pgdb.Open(background, cfg.DatabaseURL, o.Pool); err != nil {
		return nil, err
	}
	count, err := lookupCounter(o.Meter)
	if err != nil {
		return nil, err
	}
	store := pgkeys.NewStore(k.pool, o.Now)
	k.uses = auth.NewLastUse(store, o.Log)
	l := &listener{}
	if cfg.ForeignKeys {
		l.foreign = auth.NewForeignKeys(store, o.Log, o.Now)
	}
	verifierOptions := auth.VerifierOptions{
		TTL: cfg.CacheTTL, Foreign: l.foreign, Uses: k.uses, MaxLookups: cfg.MaxLookups, UnknownRate: cfg.UnknownRate, Now: o.Now,
	}
	var keys auth.Store = counted{store, count("postgres")}
	if cfg.Redis.Enabled() {
		k.Redis, err = redisdb.Open(cfg.Redis, redisdb.Options{Log: o.Log, Tracer: o.Tracer})
		if err != nil {
			return nil, err
		}
		keys = rediskeys.New(k.Redis, keys, rediskeys.Options{TTL: cfg.CacheTTL, Count: count("redis"), Now: o.Now})
		// While Redis is also down, each copy would have to be read from Postgres every second.
		verifierOptions.Unsubscribed = func() bool { return !l.subscribed.Load() && k.Redis.Up() }
		k.Limiter = ratelimit.New(k.Redis, ratelimit.Options{Log: o.Log})
	} else {
		k.Limiter = ratelimit.New(nil, ratelimit.Options{Log: o.Log})
		if cfg.RateLimit > 0 || cfg.AnonRateLimit > 0 {
			o.Log.WarnContext(ctx, "REDIS_URL is not set: no rate is limited")
		}
	}
	k.Verifier = auth.NewVerifier(keys, verifierOptions)
	l.verifier = k.Verifier
	k.Guard = auth.NewGuard(k.Verifier, k.Limiter, cfg.KeyRate(), cfg.AnonymousRate())
	if k.meters, err = k.measure(o.Meter); err != nil {
		return nil, err
	}

	k.background.Go(func() { k.uses.Run(background, o.UseInterval) })
	if l.foreign != nil {
		k.background.Go(func() { l.foreign.Run(background) })
	}
	if k.Redis != nil {
		k.background.Go(func() { rediskeys.Listen(background, k.Redis, l, o.Log) })
	}
	return k, nil
}

// listener passes received changes on.
type listener struct {
	verifier   *auth.Verifier
	foreign    *auth.ForeignKeys // nil: not used
	subscribed atomic.Bool
}

func (l *listener) Changed(projectID string, h auth.Hash) {
	l.verifier.Changed(projectID, h)
	if l.foreign != nil {
		l.foreign.Refresh()
	}
}

func (l *listener) Subscribed(is bool) {
	l.subscribed.Store(is)
	l.verifier.Drop()
	if l.foreign != nil {
		l.foreign.Refresh()
	}
}

// Ready returns an error if the keys' database does not answer. Keys with a copy in Redis or in the process are still
// verified then.
func (k *Keyring) Ready(ctx context.Context) error { return k.pool.Health(ctx) }

// Close stops the background work, writes the last use of keys and closes the connections. ctx bounds the last two.
// The caller ends all requests before.
func (k *Keyring) Close(ctx context.Context) error {
	k.once.Do(func() {
		k.cancel()
		if k.Redis != nil {
			k.closed = k.Redis.Close()
		}
		if k.Verifier != nil {
			k.Verifier.Close()
		}
		k.background.Wait()
		if k.uses != nil {
			k.uses.Flush(ctx)
		}
		if k.meters != nil {
			k.closed = errors.Join(k.closed, k.meters.Unregister())
		}
		if k.pool != nil {
			if err := shutdown.Within(ctx, k.pool.Close); err != nil {
				k.closed = errors.Join(k.closed, fmt.Errorf("close the pool of the keys' database: connections are still in use: %w", err))
			}
		}
	})
	return k.closed
}
