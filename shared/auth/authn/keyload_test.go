package authn_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// keyLoad uses keys in several processes and revokes other keys all the time, during faults of Redis.
type keyLoad struct {
	t         *testing.T
	keys      *authtest.Keys
	processes []*authn.Authenticator
	ctx       context.Context
	stop      context.CancelFunc
	users     sync.WaitGroup

	revoked atomic.Int64

	mu        sync.Mutex
	latencies []time.Duration // durations of successful checks
}

// startKeyLoad starts three processes that use thirty keys with the Redis at url, and revokes other keys one after the
// other.
func startKeyLoad(t *testing.T, url config.ServerURL) *keyLoad {
	t.Helper()
	s := &keyLoad{t: t, keys: authtest.New(t, url)}
	s.keys.Config.CacheTTL = 2 * time.Second
	s.keys.Config.RateLimit = 100_000
	for range 3 {
		s.processes = append(s.processes, s.keys.Authenticator(authn.Options{}))
	}
	type user struct{ project, key string }
	var users []user
	for i := range 30 {
		project := fmt.Sprintf("p%d", i)
		users = append(users, user{project, s.keys.Key(project)})
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	for n, a := range s.processes {
		s.users.Go(func() {
			for i := n; s.ctx.Err() == nil; i++ {
				u := users[i%len(users)]
				s.checkAccepted(a, u.project, u.key)
				if i%20 == 0 {
					stranger, _ := auth.Mint()
					s.refuses(a, u.project, stranger.Reveal())
				}
				time.Sleep(time.Millisecond) // the rate of the load
			}
		})
	}
	s.users.Go(func() {
		for i := 0; s.ctx.Err() == nil; i++ {
			s.users.Go(func() { s.revoke(fmt.Sprintf("r%d", i)) })
			time.Sleep(200 * time.Millisecond) // the rate of revocations
		}
	})
	t.Cleanup(func() { s.stop(); s.users.Wait() })
	return s
}

func (s *keyLoad) check(a *authn.Authenticator, project, key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, _, err := a.Guard.Check(ctx, project, key, auth.EntriesRead)
	return err
}

// checkAccepted checks that a good key is accepted.
func (s *keyLoad) checkAccepted(a *authn.Authenticator, project, key string) {
	begin := time.Now()
	if err := s.check(a, project, key); err != nil {
		s.t.Errorf("a good key: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latencies = append(s.latencies, time.Since(begin))
}

func (s *keyLoad) refuses(a *authn.Authenticator, project, key string) {
	if err := s.check(a, project, key); !refused(err) {
		s.t.Errorf("an unknown key is accepted: %v", err)
	}
}

// revoke mints a key, uses it in all processes and revokes it. The processes must refuse every request that begins more
// than AUTH_CACHE_TTL after the answer. The revocation may not have reached Redis during a fault, and a replica that
// replaces its master may still have the copy of the key.
func (s *keyLoad) revoke(project string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	minted, r, err := s.keys.Mint(ctx, pgkeys.MintOptions{ProjectID: project})
	if err != nil {
		s.t.Errorf("mint: %v", err)
		return
	}
	key := minted.Reveal()
	for range 3 {
		for _, a := range s.processes {
			s.checkAccepted(a, project, key)
		}
	}
	if _, err := s.keys.Revoke(ctx, project, r.ID); err != nil {
		s.t.Errorf("revoke: %v", err)
		return
	}
	answered := time.Now()
	var accepted time.Duration
	// Ask now and then, until no copy of the key can be left.
	for end := answered.Add(s.keys.Config.CacheTTL + time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, a := range s.processes {
			began := time.Since(answered)
			switch err := s.check(a, project, key); {
			case err == nil:
				accepted = max(accepted, began)
			case !refused(err):
				s.t.Errorf("a revoked key: %v", err)
			}
		}
	}
	if accepted > s.keys.Config.CacheTTL {
		s.t.Errorf("a revoked key was accepted after %v, more than AUTH_CACHE_TTL", accepted)
	}
	s.revoked.Add(1)
}

// await waits until n more keys are revoked and all processes refuse them.
func (s *keyLoad) await(n int64) {
	s.t.Helper()
	before := s.revoked.Load()
	eventually.True(s.t, fmt.Sprintf("%d keys are revoked", n), func() bool { return s.revoked.Load() >= before+n })
}

// fault runs a fault of Redis between two periods without a fault.
func (s *keyLoad) fault(name string, begin, end func()) {
	s.t.Helper()
	s.await(2)
	s.mu.Lock()
	s.latencies = nil
	s.mu.Unlock()
	started := time.Now()
	begin()
	s.await(4)
	end()
	eventually.True(s.t, "Up reports true", func() bool {
		return !slices.ContainsFunc(s.processes, func(r *authn.Authenticator) bool { return !r.Redis.Up() })
	})
	recovered := time.Since(started)
	s.await(7)

	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.latencies)
	n := len(s.latencies)
	if n == 0 {
		s.t.Fatal("nothing was checked")
	}
	s.t.Logf("%s: up again %v after it began; %d checks of good keys, p99 %v, longest %v",
		name, recovered.Round(10*time.Millisecond), n, s.latencies[n*99/100], s.latencies[n-1])
}
