package authn_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/redis/redisdb"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// user uses a key in one process all the time.
type user struct {
	mu       sync.Mutex
	accepted time.Time // when the last accepted request began
	refused  time.Time // when the last refused request began
}

// use uses a key in each process until stop is called. It waits until each process has accepted the key.
func use(t *testing.T, processes []*authn.Authenticator, project, key string) (users []*user, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, a := range processes {
		u := &user{}
		users = append(users, u)
		wg.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				err := verify(a, project, key)
				u.mu.Lock()
				switch {
				case err == nil:
					u.accepted = began
				case refused(err):
					u.refused = began
				default:
					t.Errorf("a request is neither accepted nor refused: %v", err)
				}
				u.mu.Unlock()
				time.Sleep(time.Millisecond) // the rate of the load
			}
		})
	}
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	for _, u := range users {
		eventually.True(t, "the key is accepted", func() bool {
			u.mu.Lock()
			defer u.mu.Unlock()
			return !u.accepted.IsZero()
		})
	}
	return users, stop
}

// revokeInUse revokes a key that all processes use. No request that begins more than limit after the answer to the
// revocation may be accepted.
func revokeInUse(t *testing.T, k *authtest.Keys, processes []*authn.Authenticator, limit time.Duration, before, after func()) {
	t.Helper()
	key, r := k.Minted(pgkeys.MintOptions{ProjectID: "p"})
	users, stop := use(t, processes, "p", key)
	before()
	if _, err := k.Revoke(t.Context(), "p", r.ID); err != nil {
		t.Fatal(err)
	}
	answered := time.Now()
	after()
	for i, u := range users {
		eventually.True(t, "requests are refused for a second after the limit", func() bool {
			u.mu.Lock()
			defer u.mu.Unlock()
			return u.refused.Sub(answered) > limit+time.Second
		})
		u.mu.Lock()
		if late := u.accepted.Sub(answered); late > limit {
			t.Errorf("process %d accepted a request that began %v after the revocation, more than %v", i, late, limit)
		}
		u.mu.Unlock()
	}
	stop()
}

func TestRevocation(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	nothing := func() {}
	for _, tt := range []struct {
		name  string
		limit time.Duration
		run   func(t *testing.T, limit time.Duration)
	}{
		{"with Redis", time.Second, func(t *testing.T, limit time.Duration) {
			k, processes := start(t, redistest.Patient(redistest.Start(t).URL, time.Minute))
			revokeInUse(t, k, processes, limit, nothing, nothing)
		}},
		{"without Redis", time.Second, func(t *testing.T, limit time.Duration) {
			k, processes := start(t, config.ServerURL{})
			revokeInUse(t, k, processes, limit, nothing, nothing)
		}},
		{"Redis killed before", time.Second, func(t *testing.T, limit time.Duration) {
			redis := redistest.Start(t)
			k, processes := start(t, redis.URL)
			revokeInUse(t, k, processes, limit, redis.Kill, nothing)
		}},
		{"Redis hangs before", ttl, func(t *testing.T, limit time.Duration) {
			redis := redistest.Start(t)
			k, processes := start(t, redis.URL)
			revokeInUse(t, k, processes, limit, redis.Pause, redis.Resume)
		}},
		{"the revoker cannot reach Redis", ttl, func(t *testing.T, limit time.Duration) {
			k := authtest.New(t, config.NewServerURL("redis://127.0.0.1:1"))
			k.Config.Redis = redisdb.Config{URL: redistest.Start(t).URL}
			k.Config.CacheTTL = ttl
			revokeInUse(t, k, []*authn.Authenticator{k.Authenticator(authn.Options{}), k.Authenticator(authn.Options{})}, limit, nothing, nothing)
		}},
		{"with a cluster", time.Second, func(t *testing.T, limit time.Duration) {
			k, processes := start(t, redistest.Patient(redistest.StartCluster(t).URL, time.Minute))
			revokeInUse(t, k, processes, limit, nothing, nothing)
			key := k.Key("rated")
			eventually.True(t, "the cluster keeps a rate", func() bool {
				_, rate, err := processes[0].Guard.Check(t.Context(), "rated", key, auth.EntriesRead)
				return err == nil && rate.Remaining < k.Config.KeyRate().Burst
			})
		}},
		{"a cluster loses the master of the key", ttl, func(t *testing.T, limit time.Duration) {
			cluster := redistest.StartCluster(t)
			k, processes := start(t, cluster.URL)
			revokeInUse(t, k, processes, limit, func() {
				var master *redistest.Server
				eventually.True(t, "a master has a copy", func() bool {
					for _, slot := range []int{0, 8192, 16383} {
						if m := cluster.AwaitMaster(slot); len(redistest.Client(m).Keys(t.Context(), "lectern:apikey:*").Val()) == 1 {
							master = m
						}
					}
					return master != nil
				})
				master.Kill()
			}, nothing)
		}},
		{"a failover loses the marker", ttl, func(t *testing.T, limit time.Duration) {
			redis := redistest.Start(t)
			client := redistest.Client(redis)
			k, processes := start(t, redis.URL)
			var name, value string
			var expires time.Duration
			revokeInUse(t, k, processes, limit, func() {
				eventually.True(t, "Redis has a copy", func() bool {
					names := client.Keys(t.Context(), "lectern:apikey:*").Val()
					if len(names) != 1 {
						return false
					}
					name = names[0]
					value, expires = client.Get(t.Context(), name).Val(), client.PExpireTime(t.Context(), name).Val()
					return value != "" && expires > 0
				})
			}, func() {
				if err := client.Do(t.Context(), "SET", name, value, "PXAT", expires.Milliseconds()).Err(); err != nil {
					t.Error(err)
				}
			})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, tt.limit)
		})
	}
}

// start returns two processes that verify keys with the Redis at url, if there is one.
func start(t *testing.T, url config.ServerURL) (*authtest.Keys, []*authn.Authenticator) {
	t.Helper()
	k := authtest.New(t, url)
	k.Config.CacheTTL = 2 * time.Second
	return k, []*authn.Authenticator{k.Authenticator(authn.Options{}), k.Authenticator(authn.Options{})}
}
