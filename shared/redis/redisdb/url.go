package redisdb

import (
	"crypto/tls"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lectern-dev/lectern/shared/config"
)

// stepLimit is how long one step of a command may take, unless the URL sets another limit.
const stepLimit = 200 * time.Millisecond

// sentinelDial is how long opening a connection may take when a Sentinel is asked first for the master. The driver
// asks a hanging Sentinel four times, then the others. No command waits for that; later commands find the connection.
const sentinelDial = 2 * time.Second

// backoff is the longest pause before a step is retried, unless the URL sets another.
const backoff = 20 * time.Millisecond

// target is the meaning of a URL. Exactly one of the three is set.
type target struct {
	node     *redis.Options
	sentinel *redis.FailoverOptions
	cluster  *redis.ClusterOptions
}

// parse parses a URL. Its errors never quote the URL, which holds a password.
func parse(text string) (target, error) {
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
	return t, nil
}

// encrypted reports whether connections use TLS.
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

// tune sets the options that the URL left open to values that suit a cache.
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
		// All commands here use one key. Asking the cluster how to spread others would be a wasted round trip.
		o.DisableRoutingPolicies = true
		if o.MaxRetryBackoff == 0 {
			o.MaxRetryBackoff = backoff
		}
	}
}

// defaultTimeouts sets the time limits that the URL left open.
func defaultTimeouts(limits ...*time.Duration) {
	for _, limit := range limits {
		if *limit == 0 {
			*limit = stepLimit
		}
	}
}

// retries sets the counts that the URL left open. One retry covers a pooled connection that Redis closed in the
// meantime. More would only add to the cost of a dead Redis.
func retries(commands, dials *int) {
	if *commands == 0 {
		*commands = 1
	}
	if *dials == 0 {
		*dials = 1
	}
}

// requireTLS12 sets the least TLS version if the parser left it open.
func requireTLS12(c *tls.Config) {
	if c != nil && c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS12
	}
}

// commandTimeout is how long a whole command may take, retries included.
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
