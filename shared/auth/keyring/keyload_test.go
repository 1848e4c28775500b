package keyring_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/keyring"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
)

// keyLoad uses keys in several processes and revokes other keys all the time, during faults of Redis.
type keyLoad struct {
	t     *testing.T
	keys  *authtest.Keys
	rings []*keyring.Keyring
	ctx   context.Context
	stop  context.CancelFunc
	users sync.WaitGroup

	healthy atomic.Bool // Redis has no fault at present
	revoked atomic.Int64

	mu           sync.Mutex
	latencies    []time.Duration // durations of successful checks
	duringFault  []time.Duration // times from a revocation to the last process's refusal, during a fault
	withoutFault []time.Duration // the same times without a fault
}

// slack is the delay that a busy machine may add to a promised time.
const slack = 250 * time.Millisecond

// startKeyLoad starts three processes that use thirty keys with the Redis at url, and revokes other keys one after the
// other.
func startKeyLoad(t *testing.T, url config.Secret) *keyLoad {
	t.Helper()
	s := &keyLoad{t: t, keys: authtest.New(t, url)}
	s.keys.Config.CacheTTL = 3 * time.Second
	s.keys.Config.RateLimit = 100_000
	s.keys.Config.RateBurst = 200_000
	for range 3 {
		s.rings = append(s.rings, s.keys.Keyring(keyring.Options{}))
	}
	type user struct{ project, key string }
	var users []user
	for i := range 30 {
		project := fmt.Sprintf("p%d", i)
		users = append(users, user{project, s.keys.Key(project)})
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.healthy.Store(true)
	for n, ring := range s.rings {
		s.users.Go(func() {
			for i := n; s.ctx.Err() == nil; i++ {
				u := users[i%len(users)]
				s.checkAccepted(ring, u.project, u.key)
				if i%20 == 0 {
					stranger, _ := auth.Mint()
					s.refuses(ring, u.project, stranger.Reveal())
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	s.users.Go(func() {
		for i := 0; s.ctx.Err() == nil; i++ {
			s.users.Go(func() { s.revoke(fmt.Sprintf("r%d", i)) })
			time.Sleep(200 * time.Millisecond)
		}
	})
	t.Cleanup(func() { s.stop(); s.users.Wait() })
	return s
}

func (s *keyLoad) check(ring *keyring.Keyring, project, key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, _, err := ring.Guard.Check(ctx, project, key, auth.EntriesRead)
	return err
}

// checkAccepted checks that a good key is accepted.
func (s *keyLoad) checkAccepted(ring *keyring.Keyring, project, key string) {
	begin := time.Now()
	if err := s.check(ring, project, key); err != nil {
		s.t.Errorf("a good key: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latencies = append(s.latencies, time.Since(begin))
}

func (s *keyLoad) refuses(ring *keyring.Keyring, project, key string) {
	if err := s.check(ring, project, key); !refused(err) {
		s.t.Errorf("an unknown key is accepted: %v", err)
	}
}

// revoke mints a key, uses it in all processes and revokes it. It checks that all of them refuse it in time and
// forever. During a fault, Redis may lose a revocation after its announcement: a replica that replaces its master may
// still have the copy of the key. Then processes may accept the key again until AUTH_CACHE_TTL after the revocation.
func (s *keyLoad) revoke(project string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	minted, r, err := s.keys.Mint(ctx, pgkeys.MintOptions{ProjectID: project})
	if err != nil {
		s.t.Errorf("mint: %v", err)
		return
	}
	key := minted.Reveal()
	for range 3 {
		for _, ring := range s.rings {
			s.checkAccepted(ring, project, key)
		}
	}
	healthy := s.healthy.Load()
	// The time starts at the commit of the revocation, because the announcement to a failing Redis takes longer.
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		_, _ = s.keys.Revoke(ctx, project, r.ID) // the announcement may fail during the fault
	}()
	for {
		got, err := s.keys.Get(ctx, project, r.ID)
		if err != nil {
			s.t.Errorf("read a key's record: %v", err)
			return
		}
		if !got.RevokedAt.IsZero() {
			break
		}
		time.Sleep(time.Millisecond)
	}
	begin := time.Now()
	var last time.Duration
	waiting := slices.Clone(s.rings)
	for len(waiting) > 0 && time.Since(begin) < 2*s.keys.Config.CacheTTL {
		waiting = slices.DeleteFunc(waiting, func(ring *keyring.Keyring) bool {
			if !refused(s.check(ring, project, key)) {
				return false
			}
			last = time.Since(begin)
			return true
		})
		time.Sleep(2 * time.Millisecond)
	}
	healthy = healthy && s.healthy.Load()
	switch {
	case len(waiting) > 0:
		s.t.Errorf("a revoked key is accepted after %v", time.Since(begin))
	case last > s.keys.Config.CacheTTL+slack:
		s.t.Errorf("a revoked key was accepted for %v, more than AUTH_CACHE_TTL", last)
	case healthy && last > time.Second+slack:
		s.t.Errorf("a revoked key was accepted for %v while Redis was up", last)
	}
	if !healthy {
		time.Sleep(time.Until(begin.Add(s.keys.Config.CacheTTL + slack)))
	}
	for end := time.Now().Add(1200 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, ring := range s.rings {
			if err := s.check(ring, project, key); !refused(err) {
				s.t.Errorf("a revoked key is accepted again %v after it was revoked: %v", time.Since(begin), err)
			}
		}
	}
	<-announced
	s.revoked.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if healthy {
		s.withoutFault = append(s.withoutFault, last)
	} else {
		s.duringFault = append(s.duringFault, last)
	}
}

// await waits until n more keys are revoked and all processes refuse them.
func (s *keyLoad) await(n int64) {
	s.t.Helper()
	before := s.revoked.Load()
	until(s.t, fmt.Sprintf("%d keys are revoked", n), func() bool { return s.revoked.Load() >= before+n })
}

// fault runs a fault of Redis between two periods without a fault. harms reports whether Redis is unavailable during
// the fault.
func (s *keyLoad) fault(name string, harms bool, begin, end func()) {
	s.t.Helper()
	s.await(2)
	s.mu.Lock()
	s.latencies, s.duringFault, s.withoutFault = nil, nil, nil
	s.mu.Unlock()
	s.healthy.Store(!harms)
	started := time.Now()
	begin()
	s.await(4)
	end()
	until(s.t, "Up reports true", func() bool {
		return !slices.ContainsFunc(s.rings, func(r *keyring.Keyring) bool { return !r.Redis.Up() })
	})
	recovered := time.Since(started)
	s.await(3)
	s.healthy.Store(true)
	s.await(4)

	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.latencies)
	n := len(s.latencies)
	if n == 0 {
		s.t.Fatal("nothing was checked")
	}
	s.t.Logf("%s: up again %v after it began; %d checks of good keys, p99 %v, longest %v; revoked keys refused by all after %v at most (%d), %v while it lasted (%d)",
		name, recovered.Round(10*time.Millisecond), n, s.latencies[n*99/100], s.latencies[n-1],
		longest(s.withoutFault), len(s.withoutFault), longest(s.duringFault), len(s.duringFault))
	if s.latencies[n-1] > 2*time.Second {
		s.t.Errorf("%s: a check took %v", name, s.latencies[n-1])
	}
}

func longest(ds []time.Duration) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	return slices.Max(ds).Round(time.Millisecond)
}

// long skips a test that takes over 20 s, unless LECTERN_LONG is set.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("LECTERN_LONG") != "1" {
		t.Skip("takes long; LECTERN_LONG=1 runs it")
	}
}
