// Package redisdb owns the connection to Redis: which kind of Redis a URL means, time limits that suit
// a cache, and what happens when Redis does not answer.
//
// Nothing here is the record of anything: every user of Redis has another place to go, or goes
// without. So a Redis that fails is left alone for a moment: commands end at once with [ErrDown],
// while one probe in the background finds out when it is back. A dead or hanging Redis costs each
// process one time limit, not one each request.
package redisdb

import (
	"errors"

	"github.com/lectern-dev/lectern/shared/config"
)

// ErrDown is the error of a command that was not sent, as Redis failed a moment ago.
var ErrDown = errors.New("redis is out of reach and left alone for a moment")

// Config says which Redis is used.
type Config struct {
	// The Redis that processes share, by the form of its URL: redis://user:password@host:6379/0 (one node;
	// rediss:// with TLS), unix:///path/to/redis.sock?db=0,
	// redis+sentinel://host:26379/0?master_name=m&addr=host2:26379 (the master that the Sentinels name; user
	// and password are theirs, the master's are the options username and password), or
	// redis+cluster://host:6379?addr=host2:6379 (host and each addr are seeds). rediss+sentinel:// and
	// rediss+cluster:// are the same with TLS; without the suffix a master_name means Sentinel, and an addr
	// without one Cluster. The query takes go-redis' options in snake case (pool_size, read_timeout,
	// skip_verify, …). Not set: there is no Redis.
	URL config.Secret `env:"REDIS_URL"`

	// Refuses a REDIS_URL without TLS. Production sets it, as Redis is inside the trust boundary.
	RequireTLS bool `env:"REDIS_REQUIRE_TLS"`
}

// Enabled reports whether there is a Redis.
func (c Config) Enabled() bool { return !c.URL.IsZero() }

// Validate reports a URL that cannot be read, or lacks the TLS that is required, without showing it.
func (c Config) Validate() error {
	if !c.Enabled() {
		return nil
	}
	t, err := parse(c.URL.Reveal())
	if err == nil && c.RequireTLS && !t.encrypted() {
		err = fault("is without TLS, and REDIS_REQUIRE_TLS is set; allowed: rediss://, rediss+sentinel://, rediss+cluster://")
	}
	return err
}
