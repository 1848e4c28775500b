package rediskeys_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/rediskeys"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

const ttl = 5 * time.Second

// store is the store below the Keys. It has one record, or an error.
type store struct {
	record atomic.Pointer[auth.Record]
	fault  atomic.Pointer[error]
	asked  atomic.Int64
	during func() // called between the read of the record and its return
}

func (s *store) Lookup(context.Context, string, auth.Hash) (auth.Record, error) {
	s.asked.Add(1)
	if err := s.fault.Load(); err != nil {
		return auth.Record{}, *err
	}
	r := *s.record.Load()
	r.ReadAt = time.Now()
	if s.during != nil {
		s.during()
	}
	return r, nil
}

func (s *store) fail(err error) { s.fault.Store(&err) }

// bench is a Keys with a store in memory and a real Redis.
type bench struct {
	*rediskeys.Keys
	*rediskeys.Announcer
	below  *store
	redis  *redis.Client
	server *redistest.Server
	hash   auth.Hash
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{server: redistest.Start(t), below: &store{}}
	b.redis = b.server.Client()
	_, b.hash = auth.Mint()
	b.below.record.Store(&auth.Record{
		ID: "key_1", ProjectID: "p", Name: "name", Scopes: auth.DefaultScopes, Rate: 7, Foreign: true,
		ExpiresAt: time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond),
	})
	b.Keys = b.keys(b.redis)
	b.Announcer = rediskeys.NewAnnouncer(b.redis)
	return b
}

// keys returns the Keys of another process.
func (b *bench) keys(client redis.UniversalClient) *rediskeys.Keys {
	return rediskeys.New(client, b.below, rediskeys.Options{TTL: ttl})
}

// lookup looks the key up and reports whether the store below was asked.
func (b *bench) lookup(t *testing.T, k *rediskeys.Keys) (r auth.Record, asked bool) {
	t.Helper()
	before := b.below.asked.Load()
	r, err := k.Lookup(t.Context(), "p", b.hash)
	if err != nil {
		t.Fatal(err)
	}
	return r, b.below.asked.Load() > before
}

// name returns the name of the only key in Redis.
func (b *bench) name(t *testing.T) string {
	t.Helper()
	names := b.redis.Keys(t.Context(), "*").Val()
	if len(names) != 1 {
		t.Fatalf("Redis holds %q, want one key", names)
	}
	return names[0]
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 15 s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
