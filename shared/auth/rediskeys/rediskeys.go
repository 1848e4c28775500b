// Package rediskeys owns what processes share about keys through Redis: copies of records, and the broadcasts of
// changed keys.
//
// Redis is inside the trust boundary, as Postgres is. It holds hashes and metadata of keys, never a usable key.
//
// A copy expires a TTL after Postgres was read. Its expiry is a time on the clock of Redis, which the reader gets
// with the failed look-up, before it reads Postgres. So no clock of a process matters, and a write that arrives late
// expires at once. A copy lives longer only if the clock of Redis is set back, or a failover brings a node with a
// slower clock. It then lives longer by that difference, and by at most another TTL.
//
// A change of a key replaces its copy by a marker. A copy is written only if Redis has neither a copy nor a marker.
// The marker outlives every copy that could be written from a read before the change, so a late writer cannot bring
// an old copy back. Then the change is broadcast.
//
// If Redis fails, the look-up asks the store below.
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
	// channel carries the project and hash of each key that changes.
	channel = "lectern:apikey:changed"

	// marker is the value that replaces a changed key's copy.
	marker = "changed"

	// markerTime is the lifetime of a marker. It is longer than the longest TTL of a copy, so that it does not depend
	// on a setting.
	markerTime = auth.MaxCacheTTL + time.Minute
)

// Options configures a Keys.
type Options struct {
	// TTL is how long after Postgres was read a copy is used. Required.
	TTL time.Duration

	// Count counts a look-up in Redis by outcome: "hit", "miss" or "error". Nil: none is counted.
	Count func(ctx context.Context, outcome string)

	// Now is the process's clock. Default: time.Now.
	Now func() time.Time
}

// Keys is a store that keeps copies of another store's records in Redis.
type Keys struct {
	redis redis.UniversalClient
	below auth.Store
	o     Options
}

var _ auth.Store = (*Keys)(nil)

// New returns a Keys over below. The caller closes the client.
func New(client redis.UniversalClient, below auth.Store, o Options) *Keys {
	if o.Count == nil {
		o.Count = func(context.Context, string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Keys{redis: client, below: below, o: o}
}

// name returns the name of the key's copy in Redis. In a cluster the hash decides the slot.
func name(projectID string, h auth.Hash) string {
	return "lectern:apikey:{" + h.String() + "}:" + projectID
}

// copied is a copy in Redis, with the fields that a verification needs.
type copied struct {
	ID        string      `json:"id"`
	Scopes    auth.Scopes `json:"scopes"`
	Rate      int         `json:"rate,omitempty"`
	Foreign   bool        `json:"foreign,omitempty"`
	ExpiresAt time.Time   `json:"expires_at,omitzero"`
}

// Lookup returns the copy of the key's record, or asks the store below and writes a copy of its answer. It writes no
// copy of unknown, revoked and expired keys.
func (k *Keys) Lookup(ctx context.Context, projectID string, h auth.Hash) (auth.Record, error) {
	asked := k.o.Now()
	found, err := k.read(ctx, name(projectID, h))
	var c copied
	switch {
	case err != nil:
		k.o.Count(ctx, "error")
		return k.below.Lookup(ctx, projectID, h)
	case found.value == "" || found.value == marker || json.Unmarshal([]byte(found.value), &c) != nil:
		k.o.Count(ctx, "miss")
	default:
		k.o.Count(ctx, "hit")
		left := min(found.left, k.o.TTL) - time.Millisecond // Redis rounds both times to milliseconds
		return auth.Record{
			ID: c.ID, ProjectID: projectID, Scopes: c.Scopes, Rate: c.Rate, Foreign: c.Foreign, ExpiresAt: c.ExpiresAt,
			ReadAt: asked.Add(left - k.o.TTL),
		}, nil
	}
	r, err := k.below.Lookup(ctx, projectID, h)
	if err == nil && found.value == "" && r.Active(k.o.Now()) {
		k.write(ctx, r, h, found.at.Add(k.o.TTL))
	}
	return r, err
}

// get returns a value, its time to live and the time of Redis. Both times are in milliseconds.
var get = redis.NewScript(`
local t = redis.call('TIME')
return {redis.call('GET', KEYS[1]) or '', redis.call('PTTL', KEYS[1]), t[1] * 1000 + math.floor(t[2] / 1000)}
`)

// found is a value that was read from Redis.
type found struct {
	value string // "": there is no value
	left  time.Duration
	at    time.Time // on the clock of Redis
}

func (k *Keys) read(ctx context.Context, name string) (found, error) {
	answer, err := get.Run(ctx, k.redis, []string{name}).Slice()
	if err != nil {
		return found{}, err
	}
	if len(answer) == 3 {
		value, ok1 := answer[0].(string)
		left, ok2 := answer[1].(int64)
		at, ok3 := answer[2].(int64)
		if ok1 && ok2 && ok3 {
			return found{value, time.Duration(left) * time.Millisecond, time.UnixMilli(at)}, nil
		}
	}
	return found{}, fmt.Errorf("redis answered %v", answer)
}

// write writes a copy that lives until the given time of Redis, unless Redis has a value already. If write fails, the
// next look-up asks the store below again.
func (k *Keys) write(ctx context.Context, r auth.Record, h auth.Hash, until time.Time) {
	b, err := json.Marshal(copied{ID: r.ID, Scopes: r.Scopes, Rate: r.Rate, Foreign: r.Foreign, ExpiresAt: r.ExpiresAt})
	if err == nil {
		err = k.redis.Do(ctx, "SET", name(r.ProjectID, h), b, "NX", "PXAT", until.UnixMilli()).Err()
	}
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: Redis has a value already
		k.o.Count(ctx, "error")
	}
}

// Announcer tells all processes of changes of keys.
type Announcer struct{ redis redis.UniversalClient }

// NewAnnouncer returns an Announcer. The caller closes the client.
func NewAnnouncer(client redis.UniversalClient) *Announcer { return &Announcer{client} }

// Changed replaces the copy of a stored key by a marker, and broadcasts the change. It tries for about a second.
func (a *Announcer) Changed(ctx context.Context, projectID string, h auth.Hash) error {
	return a.retry(ctx, func() error {
		// Write the marker first: a process that receives the change looks the key up at once.
		return errors.Join(
			a.redis.Set(ctx, name(projectID, h), marker, markerTime).Err(),
			a.redis.Publish(ctx, channel, payload(projectID, h)).Err(),
		)
	})
}

// Minted broadcasts that a key is new, so that processes forget that it was unknown. It tries for about a second.
func (a *Announcer) Minted(ctx context.Context, projectID string, h auth.Hash) error {
	return a.retry(ctx, func() error { return a.redis.Publish(ctx, channel, payload(projectID, h)).Err() })
}

func (a *Announcer) retry(ctx context.Context, announce func() error) (err error) {
	const attempts = 4
	for attempt := range attempts {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return errors.Join(err, ctx.Err())
			case <-time.After(300 * time.Millisecond):
			}
		}
		if err = announce(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("announce a key's change: %w", err)
}
