package rediskeys_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/rediskeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/redisdb"
)

func TestCopyIsShared(t *testing.T) {
	b := setup(t)
	first, asked := b.lookup(t, b.Keys)
	if !asked {
		t.Fatal("the store was not asked")
	}
	if first.Name != "name" {
		t.Errorf("got %+v", first)
	}
	second, asked := b.lookup(t, b.keys(secret))
	if asked {
		t.Fatal("the store was asked though there is a copy")
	}
	want := *b.below.record.Load()
	want.Name = ""
	if d := second.ReadAt.Sub(first.ReadAt); d < -time.Microsecond || d > time.Microsecond {
		t.Errorf("read at %v, the copy says %v", first.ReadAt, second.ReadAt)
	}
	second.ReadAt = time.Time{}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Error(diff)
	}
	if left := b.redis.PTTL(t.Context(), b.name(t)).Val(); left <= 0 || left > ttl {
		t.Errorf("the copy stays for %v, want at most %v", left, ttl)
	}
}

// Nothing in Redis tells which key, or which project, a copy is of.
func TestRedisHoldsNothingOfUse(t *testing.T) {
	b := setup(t)
	b.lookup(t, b.Keys)
	name := b.name(t)
	value := b.redis.Get(t.Context(), name).Val()
	unkeyed := sha256.Sum256(append([]byte("p"), b.hash[:]...))
	for what, text := range map[string]string{
		"the hash": string(b.hash[:]), "the hash in hex": b.hash.String(), "an HMAC of no key": hex.EncodeToString(unkeyed[:]),
		"the name": "name",
	} {
		if strings.Contains(name, text) || strings.Contains(value, text) {
			t.Errorf("Redis holds %s", what)
		}
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
			b.lookup(t, b.Keys)
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

// Whatever stands in Redis, no forgery and no replay is believed: the store below is asked.
func TestForgeriesAndReplays(t *testing.T) {
	for _, tt := range []struct {
		name string
		// forge puts something in the copy's place, which held good.
		forge func(t *testing.T, b *bench, name string, good []byte) []byte
		// repaired: a good copy takes its place, so that the next look-up asks nobody.
		repaired bool
	}{
		{"nothing", func(*testing.T, *bench, string, []byte) []byte { return nil }, true},
		{"garbage", func(*testing.T, *bench, string, []byte) []byte { return []byte("garbage") }, true},
		{"cut short", func(_ *testing.T, _ *bench, _ string, good []byte) []byte { return good[:len(good)-1] }, true},
		{"more scopes", func(_ *testing.T, _ *bench, _ string, good []byte) []byte { good[21] |= 8; return good }, true},
		{"no expiry", func(_ *testing.T, _ *bench, _ string, good []byte) []byte { clear(good[10:18]); return good }, true},
		{"read later", func(_ *testing.T, _ *bench, _ string, good []byte) []byte { good[8]++; return good }, true},
		{"other id", func(_ *testing.T, _ *bench, _ string, good []byte) []byte { good[27] = 'K'; return good }, true},
		{"no MAC", func(_ *testing.T, _ *bench, _ string, good []byte) []byte { clear(good[len(good)-32:]); return good }, true},
		{"by a secret that is not ours", func(t *testing.T, b *bench, name string, _ []byte) []byte {
			stranger := b.keys(config.NewSecret("a secret that nobody else has"))
			if _, err := stranger.Lookup(t.Context(), "p", b.hash); err != nil {
				t.Fatal(err)
			}
			for _, n := range b.redis.Keys(t.Context(), "*").Val() {
				if n != name {
					value, _ := b.redis.Get(t.Context(), n).Bytes()
					return value
				}
			}
			t.Fatal("the stranger kept no copy")
			return nil
		}, true},
		{"another key's", func(t *testing.T, b *bench, name string, _ []byte) []byte {
			return copyOf(t, b, name, "p", func(h *auth.Hash) { h[31]++ })
		}, true},
		{"another project's", func(t *testing.T, b *bench, name string, _ []byte) []byte {
			return copyOf(t, b, name, "q", func(*auth.Hash) {})
		}, true},
		{"replayed after the TTL", func(_ *testing.T, b *bench, _ string, good []byte) []byte {
			b.offset.Store(int64(ttl))
			return good
		}, true},
		{"from the future", func(_ *testing.T, b *bench, _ string, good []byte) []byte {
			b.offset.Store(-int64(1100 * time.Millisecond))
			return good
		}, true},
		{"a forged tombstone", func(*testing.T, *bench, string, []byte) []byte { return []byte("T") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			b.lookup(t, b.Keys)
			name := b.name(t)
			good, _ := b.redis.Get(t.Context(), name).Bytes()
			forged := tt.forge(t, b, name, good)
			b.redis.Set(t.Context(), name, forged, 0)
			r, asked := b.lookup(t, b.Keys)
			if !asked {
				t.Errorf("believed, as %+v", r)
			}
			if r.ID != "key_1" || r.Scopes != auth.DefaultScopes {
				t.Errorf("granted %+v", r)
			}
			if _, asked := b.lookup(t, b.Keys); asked == tt.repaired {
				t.Errorf("the next look-up asked: %v, want %v", asked, !tt.repaired)
			}

			// And with the store out of reach it is a fault, not a wrong key.
			b.redis.Set(t.Context(), name, forged, 0)
			b.below.fail(errors.New("out of reach"))
			if _, err := b.Lookup(t.Context(), "p", b.hash); err == nil || errors.Is(err, auth.ErrChanged) {
				t.Errorf("err = %v, want a fault that says nothing of a change", err)
			} else if _, refused := errors.AsType[auth.Refusal](err); refused {
				t.Errorf("err = %v, a refusal", err)
			}
		})
	}
}

// copyOf returns the good copy of another key than b's.
func copyOf(t *testing.T, b *bench, name, project string, change func(*auth.Hash)) []byte {
	t.Helper()
	h := b.hash
	change(&h)
	mine := *b.below.record.Load()
	other := mine
	other.ProjectID, other.ID = project, "key_2"
	b.below.record.Store(&other)
	defer b.below.record.Store(&mine)
	if _, err := b.Lookup(t.Context(), project, h); err != nil {
		t.Fatal(err)
	}
	for _, n := range b.redis.Keys(t.Context(), "*").Val() {
		if n != name {
			value, _ := b.redis.Get(t.Context(), n).Bytes()
			return value
		}
	}
	t.Fatal("the other key has no copy")
	return nil
}

func TestSkewWithinASecondIsNoFuture(t *testing.T) {
	b := setup(t)
	b.lookup(t, b.Keys)
	b.offset.Store(-int64(900 * time.Millisecond))
	if _, asked := b.lookup(t, b.Keys); asked {
		t.Error("a copy of a process whose clock is ahead by 0.9 s is not believed")
	}
}

func TestSecretsCanBeReplaced(t *testing.T) {
	b := setup(t)
	b.lookup(t, b.keys(secret))
	// The new one is known everywhere, the old one still first: nothing is lost.
	if _, asked := b.lookup(t, b.keys(secret, another)); asked {
		t.Error("a copy under the first of two secrets is not believed")
	}
	// The new one is first: copies are made anew.
	if _, asked := b.lookup(t, b.keys(another, secret)); !asked {
		t.Error("a copy under the old name was found by the new one")
	}
	if _, asked := b.lookup(t, b.keys(another, secret)); asked {
		t.Error("the new copy is not believed")
	}
	// A change reaches the copies of both.
	if err := b.keys(another, secret).Announce(t.Context(), "p", b.hash); err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]*rediskeys.Keys{"old": b.keys(secret, another), "new": b.keys(another, secret)} {
		if _, asked := b.lookup(t, k); !asked {
			t.Errorf("the %s secret's copy outlives the change", name)
		}
	}
}

// A process that read the store before the change can not put its copy back.
func TestChangeDuringAReadStays(t *testing.T) {
	b := setup(t)
	revoked := *b.below.record.Load()
	revoked.RevokedAt = time.Now()
	b.below.during = func() {
		b.below.during = nil
		b.below.record.Store(&revoked)
		if err := b.Announce(t.Context(), "p", b.hash); err != nil {
			t.Error(err)
		}
	}
	if r, _ := b.lookup(t, b.Keys); !r.RevokedAt.IsZero() {
		t.Fatal("the read was not before the change")
	}
	r, asked := b.lookup(t, b.keys(secret))
	if !asked || r.RevokedAt.IsZero() {
		t.Errorf("the old copy came back: asked %v, %+v", asked, r)
	}
	if left := b.redis.PTTL(t.Context(), b.name(t)).Val(); left <= ttl {
		t.Errorf("the tombstone stays for %v, which is no longer than a copy is believed", left)
	}
}

// A tombstone may be lost with the master that held it: who heard of the change believes no copy from before it,
// nor one that another process's clock may have dated too late.
func TestCopyFromBeforeAChangeThatWasHeardOf(t *testing.T) {
	b := setup(t)
	b.lookup(t, b.Keys)
	old, err := b.redis.Get(t.Context(), b.name(t)).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if _, asked := b.lookup(t, b.Keys); asked {
		t.Fatal("a good copy is not believed")
	}
	b.Changed(b.hash.Shard() + 1)
	if _, asked := b.lookup(t, b.Keys); asked {
		t.Error("a change in another shard makes a copy worthless")
	}
	b.Changed(b.hash.Shard())
	for range 3 {
		b.redis.Set(t.Context(), b.name(t), old, time.Minute)
		if _, asked := b.lookup(t, b.Keys); !asked {
			t.Fatal("a copy from before the change is believed")
		}
	}
	if _, asked := b.lookup(t, b.keys(secret)); asked {
		t.Error("a process that heard of nothing does not believe the new copy")
	}
	b.offset.Store(int64(1100 * time.Millisecond))
	b.lookup(t, b.Keys)
	if _, asked := b.lookup(t, b.Keys); asked {
		t.Error("a copy from well after the change is not believed")
	}
}

func TestTombstoneWithoutAStore(t *testing.T) {
	b := setup(t)
	b.lookup(t, b.Keys)
	if err := b.Announce(t.Context(), "p", b.hash); err != nil {
		t.Fatal(err)
	}
	b.below.fail(errors.New("out of reach"))
	if _, err := b.Lookup(t.Context(), "p", b.hash); !errors.Is(err, auth.ErrChanged) {
		t.Errorf("err = %v, want one that says that the key has changed", err)
	}
	// Put back when its time is over, it says nothing any more.
	b.offset.Store(int64(ttl + 3*time.Second))
	if _, err := b.Lookup(t.Context(), "p", b.hash); err == nil || errors.Is(err, auth.ErrChanged) {
		t.Errorf("a replayed tombstone: %v", err)
	}
}

func TestFaultsOfRedisFallThrough(t *testing.T) {
	b := setup(t)
	client, err := redisdb.Open(redisdb.Config{URL: b.server.URL}, redisdb.Options{Rest: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	k := rediskeys.New(client, b.below, []config.Secret{secret}, ttl, b.now)
	b.lookup(t, k)
	for _, tt := range []struct {
		name  string
		fault func()
		mend  func()
	}{
		{"hanging", b.server.Pause, b.server.Resume},
		{"killed", b.server.Kill, b.server.Restart},
		{"full", func() { b.redis.ConfigSet(t.Context(), "maxmemory", "1") }, func() { b.redis.ConfigSet(t.Context(), "maxmemory", "0") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.fault()
			start := time.Now()
			for range 100 {
				b.lookup(t, k)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("100 look-ups took %v", took)
			}
			tt.mend()
			eventually(t, "copies are used again", func() bool {
				b.lookup(t, k)
				_, asked := b.lookup(t, k)
				return !asked
			})
		})
	}
}
