// Package keyring puts the parts of key verification together for a service: the keys' database, what
// processes share through Redis, the copies in process, the rates, and what runs behind them.
package keyring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/auth/rediskeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/pgcitus"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/ratelimit"
	"github.com/lectern-dev/lectern/shared/redisdb"
)

// Options is what a Keyring is given besides its Config. The zero value is fit for use.
type Options struct {
	// Log hears of what goes wrong behind requests. Default: nothing is logged.
	Log *slog.Logger

	// Tracer traces statements and commands. Default: nothing is traced.
	Tracer trace.TracerProvider

	// Meter takes the figures that [Keyring] lists. Default: nothing is measured.
	Meter metric.MeterProvider

	// Pool says how the pool to the keys' database behaves. Its name, providers and log are set here.
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

// Keyring is key verification, ready for use. It measures:
//
//	lectern.key.lookups{layer=process|redis|postgres, outcome=hit|miss|error}   look-ups of keys
//	lectern.rate.limited                                                        requests over their rate
//	lectern.key.changes.told                                                    1 while the keys' database tells of changes, else 0
//	lectern.redis.up                                                            1 when Redis answers, else 0
type Keyring struct {
	// Guard stands before operations.
	Guard *auth.Guard
	// Verifier tells whether a key is good; Guard asks it.
	Verifier *auth.Verifier
	// Limiter keeps rates; Guard asks it.
	Limiter *ratelimit.Limiter
	// Redis is the shared client, nil when there is none. It is closed with the Keyring.
	Redis *redisdb.Client

	pool   *pgdb.Pool
	uses   *auth.LastUse
	meters metric.Registration

	cancel context.CancelFunc // ends what runs behind
	behind sync.WaitGroup
	once   sync.Once
	closed error
}

// Open puts a Keyring together. It waits for neither Postgres nor Redis: one that is down is seen when
// it is back. The caller closes the Keyring.
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
	store := pgkeys.NewStore(k.pool, o.Now)
	k.uses = auth.NewLastUse(store, o.Log)
	verifierOptions := auth.VerifierOptions{TTL: cfg.CacheTTL, Uses: k.uses, Now: o.Now}
	if cfg.ForeignKeys {
		verifierOptions.Foreign = auth.NewForeignKeys(store, o.Log, o.Now)
	}
	layers := map[string]*auth.Tally{"postgres": store.Tally()}

	var shared *rediskeys.Keys
	if cfg.Redis.Enabled() {
		k.Redis, err = redisdb.Open(cfg.Redis, redisdb.Options{Log: o.Log, Tracer: o.Tracer})
		if err != nil {
			return nil, err
		}
		shared = rediskeys.New(k.Redis, store, cfg.CacheSecrets, cfg.CacheTTL, o.Now)
		layers["redis"] = shared.Tally()
		k.Verifier = auth.NewVerifier(shared, verifierOptions)
		k.Limiter = ratelimit.New(k.Redis, ratelimit.Options{Log: o.Log})
	} else {
		k.Verifier = auth.NewVerifier(store, verifierOptions)
		k.Limiter = ratelimit.New(nil, ratelimit.Options{Log: o.Log})
		if cfg.RateLimit > 0 || cfg.AnonRateLimit > 0 {
			o.Log.WarnContext(ctx, "REDIS_URL is not set: no rate is kept")
		}
	}
	layers["process"] = k.Verifier.Tally()
	k.Guard = auth.NewGuard(k.Verifier, k.Limiter, cfg.KeyRate(), cfg.AnonymousRate())
	if k.meters, err = k.measure(o.Meter, layers); err != nil {
		return nil, err
	}

	k.behind.Go(func() { k.uses.Run(background, o.UseInterval) })
	if verifierOptions.Foreign != nil {
		k.behind.Go(func() { verifierOptions.Foreign.Run(background) })
	}
	l := listener{shared, k.Verifier, verifierOptions.Foreign}
	k.behind.Go(func() { k.Verifier.Watch(background, pgkeys.NewChanges(k.pool), l.Changed, o.Log) })
	if k.Redis != nil {
		k.behind.Go(func() { rediskeys.Listen(background, k.Redis, l, o.Log) })
	}
	return k, nil
}

// listener passes on what is heard of changes.
type listener struct {
	shared   *rediskeys.Keys // nil: there is no Redis
	verifier *auth.Verifier
	foreign  *auth.ForeignKeys // nil: not used
}

func (l listener) Changed(shard byte) {
	if l.shared != nil {
		l.shared.Changed(shard) // first: what the verifier asks for anew is to be new
	}
	l.verifier.Changed(shard)
	if l.foreign != nil {
		l.foreign.Refresh()
	}
}

func (l listener) Doubt() {
	l.verifier.Doubt()
	if l.foreign != nil {
		l.foreign.Refresh()
	}
}

// Ready tells whether keys that are new to this process can be verified: whether their database
// answers. Without it, those that were verified serve until the TTL.
func (k *Keyring) Ready(ctx context.Context) error { return k.pool.Health(ctx) }

// Close ends what runs behind, writes the last use of keys and closes the connections. Requests are to
// be over by then.
func (k *Keyring) Close(ctx context.Context) error {
	k.once.Do(func() {
		k.cancel()
		if k.Redis != nil {
			k.closed = k.Redis.Close()
		}
		if k.Verifier != nil {
			k.Verifier.Close()
		}
		k.behind.Wait()
		if k.uses != nil {
			k.uses.Flush(ctx)
		}
		if k.meters != nil {
			k.closed = errors.Join(k.closed, k.meters.Unregister())
		}
		if k.pool != nil {
			k.pool.Close()
		}
	})
	return k.closed
}
