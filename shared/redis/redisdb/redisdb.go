// Package redisdb owns the connection to Redis. The package decides which kind of Redis a URL means, sets time limits
// that suit a cache, and handles a Redis that does not answer.
//
// Redis is never the only store of anything: every user of it has another source or works without it. So the package
// stops using a Redis that fails for a moment. Commands end at once with [ErrDown], and one probe in the background
// finds out when Redis is back. A dead or hanging Redis costs each process one time limit, not one for each request.
package redisdb

import (
	"errors"

	"github.com/lectern-dev/lectern/shared/config"
)

// ErrDown is the error of a command that was not sent because Redis failed a moment ago.
var ErrDown = errors.New("redis failed a moment ago and is not used until it answers a probe")

// Config holds the URL of the Redis that processes share, and whether the URL must use TLS.
type Config struct {
	// The Redis that processes share. redis://user:password@host:6379/0 is one node, unix:///path/to/redis.sock?db=0 a
	// socket. redis+sentinel://host:26379/0?master_name=m&addr=host2:26379 is the master that Sentinels name; user and
	// password are the Sentinels', the options username and password the master's.
	// redis+cluster://host:6379?addr=host2:6379 is a cluster; host and addr are starting points. rediss instead of redis
	// uses TLS. The query takes go-redis' options in snake case (pool_size, read_timeout, skip_verify, …). Not set:
	// there is no Redis.
	URL config.ServerURL `env:"REDIS_URL"`

	// Refuses a REDIS_URL without TLS. Set it in production, as Redis is inside the trust boundary.
	RequireTLS bool `env:"REDIS_REQUIRE_TLS"`
}

// Enabled reports whether REDIS_URL is set. Without REDIS_URL, processes work without Redis.
func (c Config) Enabled() bool { return !c.URL.IsZero() }

// Validate reports a URL that cannot be parsed or lacks the required TLS. The error does not show the URL.
func (c Config) Validate() error {
	if !c.Enabled() {
		return nil
	}
	t, err := parse(c.URL)
	if err == nil && c.RequireTLS && !t.encrypted() {
		err = fault("is without TLS, and REDIS_REQUIRE_TLS is set; allowed: rediss://, rediss+sentinel://, rediss+cluster://")
	}
	return err
}
