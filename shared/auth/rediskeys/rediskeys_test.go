package rediskeys_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/redis/redisdb"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

func TestCopyIsShared(t *testing.T) {
	b := setup(t)
	if _, asked := b.lookup(t, b.Store); !asked {
		t.Fatal("the store was not asked")
	}
	second, asked := b.lookup(t, b.process(b.redis))
	if asked {
		t.Fatal("the store was asked though there is a copy")
	}
	if diff := cmp.Diff(*b.below.record.Load(), second); diff != "" {
		t.Error(diff)
	}
	if left := b.redis.PTTL(t.Context(), b.name(t)).Val(); left <= 0 || left > ttl-auth.CopyLife {
		t.Errorf("the copy stays for %v, want at most %v", left, ttl-auth.CopyLife)
	}
}

func TestUnfitForACopy(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*auth.Record)
	}{
		{"revoked", func(r *auth.Record) { r.RevokedAt = time.Now() }},
		{"expired", func(r *auth.Record) { r.ExpiresAt = time.Now().Add(-time.Second) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			r := *b.below.record.Load()
			tt.change(&r)
			b.below.record.Store(&r)
			b.lookup(t, b.Store)
			if names := b.redis.Keys(t.Context(), "*").Val(); len(names) != 0 {
				t.Errorf("Redis holds %q", names)
			}
		})
	}
	b := setup(t)
	b.below.fail(auth.ErrUnknown)
	if _, err := b.Lookup(t.Context(), "p", b.hash); !errors.Is(err, auth.ErrUnknown) {
		t.Fatal(err)
	}
	if names := b.redis.Keys(t.Context(), "*").Val(); len(names) != 0 {
		t.Errorf("Redis holds %q of an unknown key", names)
	}
}

// TestWhatIsNoCopy checks that a value that is not a copy is ignored. The store below is asked, and its fault is not
// reported as a wrong key.
func TestWhatIsNoCopy(t *testing.T) {
	for _, value := range []string{"garbage", `{"id":`, "changed"} {
		b := setup(t)
		b.lookup(t, b.Store)
		b.redis.Set(t.Context(), b.name(t), value, time.Minute)
		if r, asked := b.lookup(t, b.Store); !asked || r.ID != "key_1" {
			t.Errorf("%q is used as a copy: %+v", value, r)
		}
		b.below.fail(errors.New("out of reach"))
		_, err := b.Lookup(t.Context(), "p", b.hash)
		if _, refused := errors.AsType[apierr.Refusal](err); err == nil || refused {
			t.Errorf("%q: err = %v, want a fault", value, err)
		}
	}
}

// TestChangeDuringAReadStays checks that a process that read the store before a change cannot write its old copy after
// it.
func TestChangeDuringAReadStays(t *testing.T) {
	b := setup(t)
	revoked := *b.below.record.Load()
	revoked.RevokedAt = time.Now()
	b.below.during = func() {
		b.below.during = nil
		b.below.record.Store(&revoked)
		if err := b.Invalidate(t.Context(), "p", b.hash); err != nil {
			t.Error(err)
		}
	}
	if r, _ := b.lookup(t, b.Store); !r.RevokedAt.IsZero() {
		t.Fatal("the read was not before the change")
	}
	r, asked := b.lookup(t, b.process(b.redis))
	if !asked || r.RevokedAt.IsZero() {
		t.Errorf("the old copy came back: asked %v, %+v", asked, r)
	}
	if left := b.redis.PTTL(t.Context(), b.name(t)).Val(); left <= auth.MaxCacheTTL {
		t.Errorf("the marker stays for %v, which is no longer than a copy may live", left)
	}
}

// TestLateWritersDoNotBringARevokedKeyBack lets many processes read and write copies while the key is revoked. After
// the invalidation, Redis never holds an older copy again.
func TestLateWritersDoNotBringARevokedKeyBack(t *testing.T) {
	b := setup(t)
	valid := *b.below.record.Load()
	revoked := valid
	b.below.during = func() { time.Sleep(rand.N(2 * time.Millisecond)) } // some writes reach Redis after the revocation
	for range 50 {
		b.below.record.Store(&valid)
		b.redis.FlushAll(t.Context())
		var writers sync.WaitGroup
		for range 8 {
			k := b.process(b.redis)
			writers.Go(func() {
				for range 5 {
					if _, err := k.Lookup(t.Context(), "p", b.hash); err != nil {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(rand.N(2 * time.Millisecond)) // some writers have read the record by now
		revoked.RevokedAt = time.Now()
		b.below.record.Store(&revoked)
		if err := b.Invalidate(t.Context(), "p", b.hash); err != nil {
			t.Fatal(err)
		}
		check := func() {
			if r, asked := b.lookup(t, b.Store); !asked && r.RevokedAt.IsZero() {
				t.Fatal("a copy from before the revocation is used")
			}
		}
		check()
		writers.Wait()
		check()
	}
}

// TestALateWriteExpiresAtOnce checks that a write that reaches Redis after the copy's TTL leaves nothing, for example
// because the server hung.
func TestALateWriteExpiresAtOnce(t *testing.T) {
	b := setup(t)
	b.below.during = func() { time.Sleep(ttl) }
	b.lookup(t, b.Store)
	if names := b.redis.Keys(t.Context(), "*").Val(); len(names) != 0 {
		t.Errorf("Redis holds %q", names)
	}
}

func TestFaultsOfRedisFallThrough(t *testing.T) {
	b := setup(t)
	client, err := redisdb.Open(redisdb.Config{URL: b.server.URL}, redisdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	k := b.process(redisdb.Commands(client))
	b.lookup(t, k)
	for _, tt := range []struct {
		name  string
		fault func()
		mend  func()
	}{
		{"hanging", b.server.Pause, b.server.Resume},
		{"killed", b.server.Kill, b.server.Restart},
		{"full", func() {
			b.redis.FlushAll(t.Context())
			b.redis.ConfigSet(t.Context(), "maxmemory", "1")
		}, func() { b.redis.ConfigSet(t.Context(), "maxmemory", "0") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.fault()
			for range 100 {
				b.lookup(t, k)
			}
			tt.mend()
			eventually.True(t, "copies are used again", func() bool {
				b.lookup(t, k)
				_, asked := b.lookup(t, k)
				return !asked
			})
		})
	}
}

func TestInvalidateReportsAFault(t *testing.T) {
	b := setup(t)
	b.server.Kill()
	if err := b.Invalidate(t.Context(), "p", b.hash); err == nil {
		t.Error("invalidated without Redis")
	}
}
