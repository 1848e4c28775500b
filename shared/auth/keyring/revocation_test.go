package keyring_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/keyring"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// use verifies a key all the time in several processes, so that each has a copy, until stop is called.
func use(rings []*keyring.Keyring, project, key string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, ring := range rings {
		wg.Go(func() {
			for ctx.Err() == nil {
				_ = verify(ring, project, key)
				time.Sleep(time.Millisecond)
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// revokeWhile revokes a key that two processes use. It checks that both refuse it within the limit and never accept
// it again.
func revokeWhile(t *testing.T, k *authtest.Keys, rings []*keyring.Keyring, limit time.Duration) {
	t.Helper()
	key, r := k.Minted(pgkeys.MintOptions{ProjectID: "p"})
	for i, ring := range rings {
		if err := verify(ring, "p", key); err != nil {
			t.Fatalf("process %d: %v", i, err)
		}
	}
	stop := use(rings, "p", key)
	defer stop()
	// The time starts at the commit of the revocation, because the announcement to a failing Redis takes longer.
	revoked := make(chan struct{})
	go func() {
		defer close(revoked)
		if _, err := k.Revoke(context.Background(), "p", r.ID); err != nil {
			t.Error(err)
		}
	}()
	until(t, "the revocation stands", func() bool {
		got, err := k.Get(context.Background(), "p", r.ID)
		return err == nil && !got.RevokedAt.IsZero()
	})
	start := time.Now()
	var wg sync.WaitGroup
	for i, ring := range rings {
		wg.Go(func() {
			until(t, "the key is refused", func() bool { return refused(verify(ring, "p", key)) })
			if took := time.Since(start); took > limit {
				t.Errorf("process %d accepted the key for %v, more than %v", i, took, limit)
			}
		})
	}
	wg.Wait()
	<-revoked
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for i, ring := range rings {
			if err := verify(ring, "p", key); err == nil {
				t.Fatalf("process %d accepts the key again", i)
			}
		}
	}
}

func TestRevocation(t *testing.T) {
	redis := redistest.Start(t)
	k := authtest.New(t, redis.URL)
	k.Config.CacheTTL = 3 * time.Second
	rings := []*keyring.Keyring{k.Keyring(keyring.Options{}), k.Keyring(keyring.Options{})}
	const slack = 250 * time.Millisecond // a busy machine may add this delay
	for _, tt := range []struct {
		name  string
		fault func()
		limit time.Duration
	}{
		{"Redis up", func() {}, time.Second},
		{"Redis hanging", redis.Pause, k.Config.CacheTTL + slack},
		{"Redis killed", func() { redis.Resume(); redis.Kill() }, k.Config.CacheTTL + slack},
		{"Redis back, empty", func() {
			redis.Restart()
			until(t, "Redis is used again", func() bool { return rings[0].Redis.Up() && rings[1].Redis.Up() })
		}, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.fault()
			revokeWhile(t, k, rings, tt.limit)
		})
	}
}

// TestRevocationWithoutBroadcast checks that a revocation is seen within a second if Redis is up but a process misses
// the broadcast.
func TestRevocationWithoutBroadcast(t *testing.T) {
	redis := redistest.Start(t)
	k := authtest.New(t, redis.URL)
	ring := k.Keyring(keyring.Options{})
	// Without the permission to subscribe, a process receives no changes.
	if err := redis.Client().Do(t.Context(), "ACL", "SETUSER", "default", "resetchannels").Err(); err != nil {
		t.Fatal(err)
	}
	deaf := k.Keyring(keyring.Options{})
	revokeWhile(t, k, []*keyring.Keyring{ring, deaf}, time.Second)
}

// TestRedisCluster checks revocations with a cluster of one node. It needs the same commands as a larger cluster: keys
// in slots, and scripts of one key.
func TestRedisCluster(t *testing.T) {
	redis := redistest.Start(t, "--cluster-enabled", "yes")
	if err := redis.Client().Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", "0", "16383").Err(); err != nil {
		t.Fatal(err)
	}
	until(t, "the cluster is ready", func() bool {
		return strings.Contains(redis.Client().ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	k := authtest.New(t, config.NewSecret("redis+cluster://"+redis.Addr()))
	rings := []*keyring.Keyring{k.Keyring(keyring.Options{}), k.Keyring(keyring.Options{})}
	revokeWhile(t, k, rings, time.Second)
	key := k.Key("p")
	for i, ring := range rings {
		_, rate, err := ring.Guard.Check(t.Context(), "p", key, auth.EntriesRead)
		if err != nil || rate.Remaining >= k.Config.KeyRate().Burst {
			t.Errorf("process %d: %+v, %v: no rate is kept", i, rate, err)
		}
	}

	for _, fault := range []func(){redis.Pause, func() { redis.Resume(); redis.Kill() }} {
		fault()
		start := time.Now()
		for range 50 {
			never, _ := auth.Mint()
			if _, _, err := rings[0].Guard.Check(t.Context(), "p", never.Reveal(), auth.EntriesRead); !errors.As(err, new(*apierr.Error)) || unavailable(err) {
				t.Errorf("without the cluster: %v, want unauthorized from Postgres", err)
			}
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("50 look-ups without the cluster took %v", took)
		}
	}
}
