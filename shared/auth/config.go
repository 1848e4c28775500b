package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/lectern-dev/lectern/shared/auth/tokens"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/egressproxy"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/redis/redisdb"
)

// Config says where keys are stored, how long a cached copy of a key is valid, and how often clients may send
// requests.
type Config struct {
	// The database of the keys, with the role that reads them and writes their last use. Required in every process
	// that verifies keys.
	DatabaseURL config.ServerURL `env:"AUTH_DATABASE_URL"`

	// The same database with the role that mints, rotates, lists and revokes keys: for the region service and the
	// operator. migrate grants the role its rights. Not set: this process administers no keys.
	AdminURL config.ServerURL `env:"AUTH_ADMIN_DATABASE_URL"`

	// The same database with the role that owns it, only for the command migrate. Not set: the keys' database is not
	// migrated.
	MigrateURL config.ServerURL `env:"AUTH_MIGRATE_DATABASE_URL"`

	// Redis holds what processes share: copies of keys, and the rates. Without Redis each process asks Postgres about
	// once a second for each key in use, and no rate is limited.
	Redis redisdb.Config

	// How long after Postgres was read a copy of a key is used, in Redis and in processes together; from 2s to 1m.
	CacheTTL time.Duration `env:"AUTH_CACHE_TTL" envDefault:"5s"`

	// The OpenID providers whose tokens (Authorization: Bearer) are accepted, as a JSON list. Each has a url, as in the
	// claim iss of its tokens, and audiences, of which a token has one. Each may have a caFile
	// with certificates, a groupsClaim, and a tokenFile to read its keys with. Not set: no tokens are accepted.
	Issuers tokens.Issuers `env:"TOKEN_ISSUERS"`

	// The proxy on the way to issuers. Programs with other requests to third parties use the same.
	EgressProxy egressproxy.Config

	// Accepts imported keys, of any form.
	ForeignKeys bool `env:"FOREIGN_KEYS"`

	// How many requests a second one key may make, unless it has a rate of its own; at once, twice as many. 0: any
	// number, for all keys.
	RateLimit int `env:"RATE_LIMIT" envDefault:"1000"`

	// How many requests a second one client address may make of operations that need no key; at once, twice as many.
	// 0: any number.
	AnonRateLimit int `env:"ANON_RATE_LIMIT" envDefault:"200"`
}

// MaxCacheTTL is the longest AUTH_CACHE_TTL that [Config.Validate] allows.
const MaxCacheTTL = time.Minute

// Validate reports every fault of the URLs, the issuers, the cache's time and the rates at once. Validate does not
// require the URLs, because a process needs only the URLs that it uses.
func (c Config) Validate() error {
	errs := []error{
		pgdb.CheckURL("AUTH_DATABASE_URL", c.DatabaseURL), pgdb.CheckURL("AUTH_ADMIN_DATABASE_URL", c.AdminURL),
		pgdb.CheckURL("AUTH_MIGRATE_DATABASE_URL", c.MigrateURL),
	}
	if c.CacheTTL < 2*CopyLife || c.CacheTTL > MaxCacheTTL {
		errs = append(errs, config.Invalid("AUTH_CACHE_TTL", c.CacheTTL, "a duration from 2s to 1m"))
	}
	if _, err := tokens.NewVerifier(c.Issuers, c.EgressProxy, nil); err != nil {
		errs = append(errs, &config.Fault{Variable: "TOKEN_ISSUERS", Problem: "is wrong: " + err.Error()})
	}
	for _, n := range []struct {
		variable string
		value    int
	}{
		{"RATE_LIMIT", c.RateLimit},
		{"ANON_RATE_LIMIT", c.AnonRateLimit},
	} {
		if n.value < 0 || n.value > limits.MaxRate {
			errs = append(errs, config.Invalid(n.variable, n.value, fmt.Sprintf("an integer from 0 to %d", limits.MaxRate)))
		}
	}
	return errors.Join(errs...)
}

// KeyRate returns the rate of a key that has no rate of its own. The burst is twice the requests of a second.
func (c Config) KeyRate() limits.Rate {
	return limits.Rate{PerSecond: c.RateLimit, Burst: 2 * c.RateLimit}
}

// AnonymousRate returns the rate of a client network that sends no key. The burst is twice the requests of a second.
func (c Config) AnonymousRate() limits.Rate {
	return limits.Rate{PerSecond: c.AnonRateLimit, Burst: 2 * c.AnonRateLimit}
}
