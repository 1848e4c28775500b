package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/ratelimit"
	"github.com/lectern-dev/lectern/shared/redisdb"
)

// Config says where keys are stored, how long a cached copy of a key is valid, and how often clients may send
// requests.
type Config struct {
	// The database of the keys, with the role that reads them and writes their last use. Required in every process
	// that verifies keys.
	DatabaseURL config.Secret `env:"AUTH_DATABASE_URL"`

	// The same database with the role that mints, rotates, lists and revokes keys: for the region service and the
	// operator. migrate grants the role its rights. Not set: this process administers no keys.
	AdminURL config.Secret `env:"AUTH_ADMIN_DATABASE_URL"`

	// The same database with the role that owns it, only for the command migrate. Not set: the keys' database is not
	// migrated.
	MigrateURL config.Secret `env:"AUTH_MIGRATE_DATABASE_URL"`

	// Redis holds what processes share: copies of keys, and the rates. Without Redis each process asks Postgres about once
	// a second for each key in use, and no rate is limited.
	Redis redisdb.Config

	// How long after Postgres was read a copy of a key is used, in Redis and in processes together; from 2s to 1m.
	CacheTTL time.Duration `env:"AUTH_CACHE_TTL" envDefault:"5s"`

	// How many look-ups of keys one process may have in flight, from 1 to 10000. Another request whose key is not cached
	// waits half a second, then gets 429.
	MaxLookups int `env:"AUTH_MAX_LOOKUPS" envDefault:"64"`

	// How many refused keys one client address may try a second at one process. Further ones get 429 unless their key is
	// cached. 0: any number.
	UnknownRate int `env:"AUTH_UNKNOWN_RATE" envDefault:"50"`

	// Accepts imported keys, of any form.
	ForeignKeys bool `env:"FOREIGN_KEYS"`

	// How many requests a second one key may make, unless it has a rate of its own. 0: any number, for all keys.
	RateLimit int `env:"RATE_LIMIT" envDefault:"1000"`

	// How many requests a key that was idle may make at once. Not set: twice RATE_LIMIT. A key with its own rate has a
	// burst in proportion.
	RateBurst int `env:"RATE_BURST"`

	// How many requests a second one client address may make of operations that need no key; at once, twice as many.
	// 0: any number.
	AnonRateLimit int `env:"ANON_RATE_LIMIT" envDefault:"200"`
}

// MaxCacheTTL is the longest AUTH_CACHE_TTL.
const MaxCacheTTL = time.Minute

// Validate reports every fault at once. It does not require the URLs: which of them are required depends on the
// process.
func (c Config) Validate() error {
	var errs []error
	if c.CacheTTL < 2*CopyLife || c.CacheTTL > MaxCacheTTL {
		errs = append(errs, config.Invalid("AUTH_CACHE_TTL", c.CacheTTL, "a duration from 2s to 1m"))
	}
	if c.MaxLookups < 1 || c.MaxLookups > 10_000 {
		errs = append(errs, config.Invalid("AUTH_MAX_LOOKUPS", c.MaxLookups, "an integer from 1 to 10000"))
	}
	for _, n := range []struct {
		variable string
		value    int
	}{
		{"RATE_LIMIT", c.RateLimit},
		{"RATE_BURST", c.RateBurst},
		{"ANON_RATE_LIMIT", c.AnonRateLimit},
		{"AUTH_UNKNOWN_RATE", c.UnknownRate},
	} {
		if n.value < 0 || n.value > ratelimit.Max {
			errs = append(errs, config.Invalid(n.variable, n.value, fmt.Sprintf("an integer from 0 to %d", ratelimit.Max)))
		}
	}
	return errors.Join(errs...)
}

// KeyRate returns the rate of a key that has no rate of its own.
func (c Config) KeyRate() ratelimit.Rate {
	r := ratelimit.Rate{PerSecond: c.RateLimit, Burst: c.RateBurst}
	if r.Burst == 0 {
		r.Burst = 2 * r.PerSecond
	}
	return r
}

// AnonymousRate returns the rate of a client address that sends no key.
func (c Config) AnonymousRate() ratelimit.Rate {
	return ratelimit.Rate{PerSecond: c.AnonRateLimit, Burst: 2 * c.AnonRateLimit}
}
