// Package rediskeys keeps copies of keys in Redis, which processes share.
//
// Redis is inside the trust boundary, as Postgres is. Redis holds hashes and metadata of keys, never a usable key.
//
// A copy lives for a limited time after Postgres was read. The expiry of a copy is a time on the clock of Redis, which
// the reader gets with the failed look-up, before it reads Postgres. So no clock of a process matters, and a write that
// arrives late expires at once. If the clock of Redis is set back, or a failover brings a node with a slower clock, a
// copy lives longer by that difference.
//
// A change of a key replaces its copy by a marker. A copy is written only if Redis has neither a copy nor a marker. The
// marker outlives every copy that could be written from a read before the change, so a late writer cannot bring an old
// copy back.
//
// If Redis fails, a look-up asks the store in Postgres directly.
package rediskeys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lectern-dev/lectern/shared/auth"
)

const (
	// marker is the value that replaces a changed key's copy.
	marker = "changed"

	// markerLife is how long a marker lives: longer than any copy can live, whatever AUTH_CACHE_TTL is.
	markerLife = auth.MaxCacheTTL + 10*time.Second
)

// Options configures a [Store]: how long a copy is used, and how look-ups are counted.
type Options struct {
	// TTL is how long after Postgres was read any copy of a key is used. A copy in Redis lives shorter than that by
	// [auth.CopyLife], because a process may copy it just before it expires. Required.
	TTL time.Duration

	// Count counts a look-up in Redis by outcome: "hit", "miss" or "error". A failed write of a copy is another
	// "error". Required.
	Count func(ctx context.Context, outcome string)
}

// Store is an [auth.Store] that keeps copies of another store's records in Redis.
type Store struct {
	redis redis.UniversalClient
	below auth.Store
	life  time.Duration
	count func(ctx context.Context, outcome string)
}

var _ auth.Store = (*Store)(nil)

// NewStore returns a Store that asks below for the records that Redis does not have. The caller closes the client.
func NewStore(client redis.UniversalClient, below auth.Store, o Options) *Store {
	return &Store{redis: client, below: below, life: o.TTL - auth.CopyLife, count: o.Count}
}

// name returns the name of the key's copy in Redis. In a cluster the hash decides the slot.
func name(projectID string, h auth.Hash) string {
	return "lectern:apikey:{" + h.String() + "}:" + projectID
}

// copied is the JSON value of a copy in Redis: the fields of a record that a verification needs.
type copied struct {
	ID        string      `json:"id"`
	Name      string      `json:"name,omitempty"`
	Scopes    auth.Scopes `json:"scopes"`
	Rate      int         `json:"rate,omitempty"`
	Foreign   bool        `json:"foreign,omitempty"`
	ExpiresAt time.Time   `json:"expires_at,omitzero"`
}

// Lookup returns the copy of the key's record, or asks the store below and writes a copy of its answer. If Redis fails,
// Lookup only asks the store below. Lookup writes no copy of unknown, revoked and expired keys, and none while Redis
// has a marker for the key.
func (s *Store) Lookup(ctx context.Context, projectID string, h auth.Hash) (auth.Record, error) {
	value, now, err := s.read(ctx, name(projectID, h))
	var c copied
	switch {
	case err != nil:
		s.count(ctx, "error")
		return s.below.Lookup(ctx, projectID, h)
	case value != "" && value != marker && json.Unmarshal([]byte(value), &c) == nil:
		s.count(ctx, "hit")
		return auth.Record{
			ID: c.ID, ProjectID: projectID, Name: c.Name, Scopes: c.Scopes, Rate: c.Rate, Foreign: c.Foreign, ExpiresAt: c.ExpiresAt,
		}, nil
	}
	s.count(ctx, "miss")
	r, err := s.below.Lookup(ctx, projectID, h)
	if err == nil && value == "" && r.Active(time.Now()) {
		s.write(ctx, r, h, now.Add(s.life))
	}
	return r, err
}

// Grants asks the store below: Redis has no copies for several hashes together.
func (s *Store) Grants(ctx context.Context, projectID string, hashes []auth.Hash) ([]auth.Record, error) {
	return s.below.Grants(ctx, projectID, hashes)
}

// EachProject asks the store below.
func (s *Store) EachProject(ctx context.Context, hashes []auth.Hash, do func(auth.Record) bool) error {
	return s.below.EachProject(ctx, hashes, do)
}

// get is a script that returns the value of KEYS[1], or "" without a value, and the time of Redis in Unix milliseconds.
var get = redis.NewScript(`
local t = redis.call('TIME')
return {redis.call('GET', KEYS[1]) or '', t[1] * 1000 + math.floor(t[2] / 1000)}
`)

// read returns the value of a name, or "" if Redis has no value, and the time on the clock of Redis.
func (s *Store) read(ctx context.Context, name string) (string, time.Time, error) {
	answer, err := get.Run(ctx, s.redis, []string{name}).Slice()
	if err != nil {
		return "", time.Time{}, err
	}
	if len(answer) == 2 {
		value, ok1 := answer[0].(string)
		now, ok2 := answer[1].(int64)
		if ok1 && ok2 {
			return value, time.UnixMilli(now), nil
		}
	}
	return "", time.Time{}, fmt.Errorf("redis answered %v", answer)
}

// write writes a copy that lives until the given time of Redis, unless Redis has a value already. If write fails, the
// next look-up asks the store below again.
func (s *Store) write(ctx context.Context, r auth.Record, h auth.Hash, until time.Time) {
	b, err := json.Marshal(copied{ID: r.ID, Name: r.Name, Scopes: r.Scopes, Rate: r.Rate, Foreign: r.Foreign, ExpiresAt: r.ExpiresAt})
	if err == nil {
		err = s.redis.Do(ctx, "SET", name(r.ProjectID, h), b, "NX", "PXAT", until.UnixMilli()).Err()
	}
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: Redis has a value already
		s.count(ctx, "error")
	}
}

// Invalidator replaces the copies of changed keys in Redis by markers, so that the next look-up asks the store.
type Invalidator struct{ redis redis.UniversalClient }

// NewInvalidator returns an Invalidator that writes markers through client. The caller closes client.
func NewInvalidator(client redis.UniversalClient) *Invalidator { return &Invalidator{client} }

// Invalidate replaces the copy of a stored key by a marker. If Redis fails, Invalidate retries for about a second, and
// then returns the last error.
func (i *Invalidator) Invalidate(ctx context.Context, projectID string, h auth.Hash) (err error) {
	const attempts = 4
	for attempt := range attempts {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return errors.Join(err, ctx.Err())
			case <-time.After(300 * time.Millisecond):
			}
		}
		if err = i.redis.Set(ctx, name(projectID, h), marker, markerLife).Err(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("invalidate the copy of a key: %w", err)
}
