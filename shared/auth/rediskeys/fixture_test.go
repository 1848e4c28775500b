package rediskeys_test

import (
	"context"
	"errors"
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
	if s.during != nil {
		s.during()
	}
	return r, nil
}

func (s *store) Grants(context.Context, string, []auth.Hash) ([]auth.Record, error) {
	return nil, errors.New("no test asks for it")
}

func (s *store) EachProject(context.Context, []auth.Hash, func(auth.Record) bool) error {
	return errors.New("no test asks for it")
}

func (s *store) fail(err error) { s.fault.Store(&err) }

// bench is a Store with a store in memory and a real Redis.
type bench struct {
	*rediskeys.Store
	*rediskeys.Invalidator
	below  *store
	redis  *redis.Client
	server *redistest.Server
	hash   auth.Hash
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{server: redistest.Start(t), below: &store{}}
	b.redis = redistest.Client(b.server)
	_, b.hash = auth.Mint()
	b.below.record.Store(&auth.Record{
		ID: "key_1", ProjectID: "p", Name: "name", Scopes: auth.DefaultScopes, Rate: 7, Foreign: true,
		ExpiresAt: time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond),
	})
	b.Store = b.process(b.redis)
	b.Invalidator = rediskeys.NewInvalidator(b.redis)
	return b
}

// process returns the Store of another process.
func (b *bench) process(client redis.UniversalClient) *rediskeys.Store {
	return rediskeys.NewStore(client, b.below, rediskeys.Options{TTL: ttl, Count: func(context.Context, string) {}})
}

// lookup looks the key up and reports whether the store below was asked.
func (b *bench) lookup(t *testing.T, k *rediskeys.Store) (r auth.Record, asked bool) {
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
