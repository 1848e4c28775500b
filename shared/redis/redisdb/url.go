package redisdb

import (
	"context"
	"crypto/tls"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lectern-dev/lectern/shared/config"
)

// stepLimit is how long one step of a command, such as a dial or a read, may take. The URL may set another limit.
const stepLimit = 200 * time.Millisecond

// sentinelDial is how long it may take to open a connection when the driver first asks a Sentinel for the master. The
// driver asks a hanging Sentinel four times, then the other Sentinels. No command waits that long; later commands find
// the connection.
const sentinelDial = 2 * time.Second

// backoff is the longest pause before the driver retries a step with Sentinels or a cluster, unless the URL sets
// another pause.
const backoff = 20 * time.Millisecond

// target is a parsed REDIS_URL as options of go-redis. Exactly one of the three fields is set.
type target struct {
	node     *redis.Options
	sentinel *redis.FailoverOptions
	cluster  *redis.ClusterOptions
}

// parse returns the target of a REDIS_URL. The error is a [*config.Fault] without the text of the URL, which may hold a
// password.
func parse(server config.ServerURL) (target, error) {
	text := server.Reveal()
	u, err := url.Parse(text)
	if err != nil {
		return target{}, fault("is not a URL")
	}
	scheme, kind, _ := strings.Cut(u.Scheme, "+")
	u.Scheme = scheme
	query := u.Query()
	if kind == "" {
		switch {
		case query.Has("master_name"):
			kind = "sentinel"
		case query.Has("addr"):
			kind = "cluster"
		}
	}

	var t target
	switch kind {
	case "":
		t.node, err = redis.ParseURL(u.String())
	case "sentinel":
		if query.Get("master_name") == "" {
			return target{}, fault("is of Sentinels and does not say master_name")
		}
		t.sentinel, err = redis.ParseFailoverURL(u.String())
	case "cluster":
		t.cluster, err = redis.ParseClusterURL(u.String())
	default:
		return target{}, fault("has an unknown scheme; known: redis, rediss and unix, and the first two with +sentinel or +cluster")
	}
	if err != nil {
		return target{}, fault("cannot be read: " + strings.ReplaceAll(err.Error(), text, "(the URL)"))
	}
	t.tune()
	if server.HasPasswordFile() {
		t.readPassword(server)
	}
	return t, nil
}

// readPassword makes each new connection to a server read its password from the file. Sentinels have another password,
// which stays in the URL.
func (t target) readPassword(server config.ServerURL) {
	as := func(user string) func(context.Context) (string, string, error) {
		return func(context.Context) (string, string, error) {
			password, err := server.Password()
			return user, password, err
		}
	}
	switch {
	case t.node != nil:
		t.node.CredentialsProviderContext = as(t.node.Username)
	case t.sentinel != nil:
		t.sentinel.CredentialsProviderContext = as(t.sentinel.Username)
	case t.cluster != nil:
		t.cluster.CredentialsProviderContext = as(t.cluster.Username)
	}
}

// encrypted reports whether connections to the target use TLS.
func (t target) encrypted() bool {
	switch {
	case t.node != nil:
		return t.node.TLSConfig != nil
	case t.sentinel != nil:
		return t.sentinel.TLSConfig != nil
	default:
		return t.cluster.TLSConfig != nil
	}
}

func fault(problem string) error {
	return &config.Fault{Variable: "REDIS_URL", Problem: problem}
}

// tune sets the options that the URL left open to values that suit a cache: short limits and few retries.
func (t target) tune() {
	off := func() *maintnotifications.Config {
		return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}
	switch {
	case t.node != nil:
		o := t.node
		o.MaintNotificationsConfig, o.DisableIdentity, o.ContextTimeoutEnabled = off(), true, true
		defaultTimeouts(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout)
		retries(&o.MaxRetries, &o.DialerRetries)
		requireTLS12(o.TLSConfig)
	case t.sentinel != nil:
		o := t.sentinel
		o.DisableIdentity, o.ContextTimeoutEnabled = true, true
		if o.DialTimeout == 0 {
			o.DialTimeout = sentinelDial
		}
		if o.MaxRetryBackoff == 0 {
			o.MaxRetryBackoff = backoff
		}
		defaultTimeouts(&o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout)
		retries(&o.MaxRetries, &o.DialerRetries)
		requireTLS12(o.TLSConfig)
	case t.cluster != nil:
		o := t.cluster
		o.MaintNotificationsConfig, o.DisableIdentity, o.ContextTimeoutEnabled = off(), true, true
		defaultTimeouts(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout)
		retries(&o.MaxRetries, &o.DialerRetries)
		requireTLS12(o.TLSConfig)
		// All commands here use one key. To ask the cluster how to spread other commands would waste a round trip.
		o.DisableRoutingPolicies = true
		if o.MaxRetryBackoff == 0 {
			o.MaxRetryBackoff = backoff
		}
	}
}

// defaultTimeouts sets each limit that the URL left open, which is 0, to stepLimit.
func defaultTimeouts(limits ...*time.Duration) {
	for _, limit := range limits {
		if *limit == 0 {
			*limit = stepLimit
		}
	}
}

// retries sets each count that the URL left open, which is 0, to 1. One retry covers a pooled connection that Redis
// closed in the meantime. More retries would only add to the cost of a dead Redis.
func retries(commands, dials *int) {
	if *commands == 0 {
		*commands = 1
	}
	if *dials == 0 {
		*dials = 1
	}
}

// requireTLS12 sets the least TLS version to 1.2 if the parser left it open. A nil c means a connection without TLS.
func requireTLS12(c *tls.Config) {
	if c != nil && c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS12
	}
}

// commandTimeout returns how long a whole command may take, retries included: the limit of its longest step, and 50 ms.
// With Sentinels, the limit of opening a connection does not count.
func (t target) commandTimeout() time.Duration {
	const margin = 50 * time.Millisecond
	switch {
	case t.node != nil:
		return max(t.node.DialTimeout, t.node.ReadTimeout) + margin
	case t.sentinel != nil:
		return t.sentinel.ReadTimeout + margin
	default:
		return max(t.cluster.DialTimeout, t.cluster.ReadTimeout) + margin
	}
}
