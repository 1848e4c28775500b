package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lectern-dev/lectern/shared/redis/redisdb"
)

// checkRedisURL reports the faults of REDIS_URL, such as a URL without TLS if REDIS_REQUIRE_TLS is set.
func (in *inputs) checkRedisURL(context.Context) []finding {
	if in.redisConfig.Enabled() {
		return append(in.redisFaults, finding{"REDIS_URL", nil})
	}
	return in.redisFaults
}

// checkRedisLogin connects to Redis with the time limits of the services, for the checks that follow.
func (in *inputs) checkRedisLogin(ctx context.Context) []finding {
	if len(in.redisFaults) > 0 || !in.redisConfig.Enabled() {
		return nil
	}
	client, err := redisdb.Open(in.redisConfig, redisdb.Options{})
	if err != nil {
		return []finding{{"REDIS_URL", err}}
	}
	if err := client.Reach(ctx); err != nil {
		_ = client.Close()
		return []finding{{"REDIS_URL", fmt.Errorf("no log-in: %s; correct the URL, the user, or the network", why(err))}}
	}
	in.redis = client
	text, err := redisdb.Commands(client).Info(ctx).Result() // in a cluster, of one node
	if err == nil {
		in.redisInfo = map[string]string{}
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		in.redisInfo[name] = value
	}
	return []finding{{"REDIS_URL", nil}}
}

// onRedis returns a check of the Redis that was reached.
func onRedis(do func(context.Context, *inputs) error) func(*inputs, context.Context) []finding {
	return func(in *inputs, ctx context.Context) []finding {
		if in.redis == nil {
			return nil
		}
		return []finding{{"REDIS_URL", do(ctx, in)}}
	}
}

func checkRedisVersion(_ context.Context, in *inputs) error {
	return redisVersion(in.redisInfo["redis_version"])
}

// redisVersion returns an error if the version is too old.
func redisVersion(version string) error {
	var major int
	if _, err := fmt.Sscanf(version, "%d.", &major); err != nil {
		return skipped("the answer to INFO has no redis_version")
	}
	if major < 7 {
		return fmt.Errorf("the server is Redis %s: use Redis 7 or later", version)
	}
	return nil
}

// checkRedisMemory checks that a full Redis does not refuse writes. A maxmemory of 0 is no limit.
func checkRedisMemory(_ context.Context, in *inputs) error {
	limit, policy := in.redisInfo["maxmemory"], in.redisInfo["maxmemory_policy"]
	switch {
	case limit == "" || policy == "":
		return skipped("the answer to INFO has no maxmemory_policy")
	case limit != "0" && policy == "noeviction":
		return errors.New("the server has a maxmemory and refuses writes when it is full: set maxmemory-policy allkeys-lru")
	}
	return nil
}

// checkRedisScripts runs a script that reads a key of Lectern, which does not exist.
func checkRedisScripts(ctx context.Context, in *inputs) error {
	err := redisdb.Commands(in.redis).Eval(ctx, "return redis.call('GET', KEYS[1])", []string{"lectern:check"}).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		return errors.New("the server refuses scripts: allow the user EVAL and EVALSHA, and all commands on the keys lectern:*")
	}
	return nil
}
