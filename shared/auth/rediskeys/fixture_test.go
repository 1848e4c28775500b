package rediskeys_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/rediskeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

const ttl = 5 * time.Second

var (
	secret  = config.NewSecret("a cache secret of some length")
	another = config.NewSecret("another cache secret, as long")
)

// store is the store below: one record, or an error.
type store struct {
	record atomic.Pointer[auth.Record]
	fault  atomic.Pointer[error]
	asked  atomic.Int64
	now    func() time.Time
	during func() // runs after the record was read, before it is returned
}

func (s *store) Lookup(context.Context, string, auth.Hash) (auth.Record, error) {
	s.asked.Add(1)
	if err := s.fault.Load(); err != nil {
		return auth.Record{}, *err
	}
	r := *s.record.Load()
	r.ReadAt = s.now()
	if s.during != nil {
		s.during()
	}
	return r, nil
}

func (s *store) fail(err error) { s.fault.Store(&err) }

// bench is a Keys over a store in memory and a real Redis.
type bench struct {
	*rediskeys.Keys
	below  *store
	redis  *redis.Client
	server *redistest.Server
	offset atomic.Int64
	hash   auth.Hash
}

func (b *bench) now() time.Time { return time.Now().Add(time.Duration(b.offset.Load())) }

func setup(t *testing.T, secrets ...config.Secret) *bench {
	t.Helper()
	b := &bench{server: redistest.Start(t)}
	b.redis = b.server.Client()
	b.below = &store{now: b.now}
	_, b.hash = auth.Mint()
	b.below.record.Store(&auth.Record{
		ID: "key_1", ProjectID: "p", Name: "name", Scopes: auth.DefaultScopes, Rate: 7, Foreign: true,
		ExpiresAt: time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond),
	})
	if len(secrets) == 0 {
		secrets = []config.Secret{secret}
	}
	b.Keys = b.keys(secrets...)
	return b
}

// keys is another process's Keys.
func (b *bench) keys(secrets ...config.Secret) *rediskeys.Keys {
	return rediskeys.New(b.redis, b.below, secrets, ttl, b.now)
}

// lookup looks the key up and tells whether the store below was asked.
func (b *bench) lookup(t *testing.T, k *rediskeys.Keys) (r auth.Record, asked bool) {
	t.Helper()
	before := b.below.asked.Load()
	r, err := k.Lookup(t.Context(), "p", b.hash)
	if err != nil {
		t.Fatal(err)
	}
	return r, b.below.asked.Load() > before
}

// name is the one key in Redis.
func (b *bench) name(t *testing.T) string {
	t.Helper()
	names := b.redis.Keys(t.Context(), "*").Val()
	if len(names) != 1 {
		t.Fatalf("Redis holds %q, want one key", names)
	}
	return names[0]
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 15 s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
