package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/ratelimit"
	"github.com/lectern-dev/lectern/shared/redisdb"
)

// Config says where keys are kept, how long an answer about one is believed, and how often one may
// ask.
type Config struct {
	// The database of the keys, by the role that reads them and notes their last use.
	// Required by what verifies keys.
	DatabaseURL config.Secret `env:"AUTH_DATABASE_URL"`

	// The same database by the role that owns it, which migrates, mints and revokes.
	// Not set: this process does none of that.
	MigrateURL config.Secret `env:"AUTH_MIGRATE_DATABASE_URL"`

	// Redis holds what processes share: keys that were read, the broadcast of their changes, and the
	// rates. Without it each process asks Postgres, revocations take effect within CacheTTL at the
	// latest, and no rate is kept.
	Redis redisdb.Config

	// How long after Postgres was read its answer about a key is believed, whatever caches
	// it passed; from 100ms to 10m.
	CacheTTL time.Duration `env:"AUTH_CACHE_TTL" envDefault:"5s"`

	// The secrets that authenticate what lies in Redis: comma-separated, each of 16 bytes at least, the
	// same in every process. The first is written with, all are read with. To change one, add the new
	// one last everywhere, then put it first everywhere, then drop the old one. Required with
	// REDIS_URL.
	CacheSecrets []config.Secret `env:"AUTH_CACHE_SECRETS"`

	// Accepts keys brought along from elsewhere, of any form.
	ForeignKeys bool `env:"FOREIGN_KEYS"`

	// How many requests a second one key may make, unless it has a rate of its own. 0: any number, for
	// all keys.
	RateLimit int `env:"RATE_LIMIT" envDefault:"1000"`

	// How many requests a key that was idle may make at once. Not set: twice RATE_LIMIT. A key with a rate
	// of its own has a burst in the same proportion.
	RateBurst int `env:"RATE_BURST"`

	// How many requests a second one client address may make of operations that ask
	// for no key; at once, twice as many. 0: any number.
	AnonRateLimit int `env:"ANON_RATE_LIMIT" envDefault:"200"`
}

const minCacheSecret = 16

// Validate reports every fault at once. Whether a URL is required depends on what is done with it, so
// that is said when it is missing.
func (c Config) Validate() error {
	var errs []error
	if c.CacheTTL < 100*time.Millisecond || c.CacheTTL > 10*time.Minute {
		errs = append(errs, config.Invalid("AUTH_CACHE_TTL", c.CacheTTL, "a duration from 100ms to 10m"))
	}
	if c.Redis.Enabled() && len(c.CacheSecrets) == 0 {
		errs = append(errs, &config.Fault{Variable: "AUTH_CACHE_SECRETS", Problem: "is not set, and is required with REDIS_URL"})
	}
	for _, s := range c.CacheSecrets {
		if len(s.Reveal()) < minCacheSecret {
			errs = append(errs, &config.Fault{Variable: "AUTH_CACHE_SECRETS",
				Problem: fmt.Sprintf("has a secret of %d bytes; allowed: %d or more", len(s.Reveal()), minCacheSecret)})
			break
		}
	}
	for _, n := range []struct {
		variable string
		value    int
	}{
		{"RATE_LIMIT", c.RateLimit},
		{"RATE_BURST", c.RateBurst},
		{"ANON_RATE_LIMIT", c.AnonRateLimit},
	} {
		if n.value < 0 || n.value > ratelimit.Max {
			errs = append(errs, config.Invalid(n.variable, n.value, fmt.Sprintf("an integer from 0 to %d", ratelimit.Max)))
		}
	}
	return errors.Join(errs...)
}

// KeyRate is the rate of a key that has none of its own.
func (c Config) KeyRate() ratelimit.Rate {
	r := ratelimit.Rate{PerSecond: c.RateLimit, Burst: c.RateBurst}
	if r.Burst == 0 {
		r.Burst = 2 * r.PerSecond
	}
	return r
}

// AnonymousRate is the rate of a client address.
func (c Config) AnonymousRate() ratelimit.Rate {
	return ratelimit.Rate{PerSecond: c.AnonRateLimit, Burst: 2 * c.AnonRateLimit}
}
