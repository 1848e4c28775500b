// Package rediskeys owns what processes share about keys through Redis: copies of what another store
// said, and the announcement that a key has changed.
//
// Redis is not trusted. Whoever reads it finds pseudonyms for names (HMACs, so that a weak foreign key
// can not be guessed offline from its hash) and no usable key. Whoever writes it can make this package
// ask the store below, and nothing else: a copy bears a MAC over the key's hash, its project, all that
// it grants and the moment at which the store of record was read, and is ignored when it does not fit,
// is another key's, is older than the TTL or from the future.
//
// A change leaves a tombstone in the copy's place for longer than any copy is believed, so that a
// process that read the store before the change can not put an old copy back. A forged tombstone
// costs a look-up in the store below.
//
// A tombstone can be lost: replication is asynchronous, so that a replica that takes its dead master's place
// may hold the old copy still, or the master may be dead when the key changes. So a process that has heard of a
// change believes no copy of that shard of the keys that may be older than the change.
//
// Every fault of Redis falls through to the store below.
package rediskeys

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
)

const (
	// channel carries the shard of each key that changes, in hexadecimal.
	channel = "lectern:keys:changed"

	// A copy from further in the future is ignored, as is one from less than that after a change, and a
	// tombstone outlives the TTL by twice that.
	skew = auth.ClockSkew
)

// Keys is a store over another one that keeps copies in Redis.
type Keys struct {
	redis  redis.UniversalClient
	below  auth.Store
	sealer sealer
	ttl    time.Duration
	now    func() time.Time
	fill   *redis.Script
	tally  auth.Tally

	// heard is when a change of a key of the shard was last heard of, in Unix microseconds.
	heard [256]atomic.Int64
}

var _ auth.Store = (*Keys)(nil)

// New makes a Keys over below. The first of the secrets, of which there is at least one, is written
// with, and all are read with; ttl is how long after the store of record was read a copy is believed.
// The caller closes the client.
func New(client redis.UniversalClient, below auth.Store, secrets []config.Secret, ttl time.Duration, now func() time.Time) *Keys {
	return &Keys{redis: client, below: below, sealer: newSealer(secrets), ttl: ttl, now: now, fill: redis.NewScript(fill)}
}

// Tally counts look-ups in Redis.
func (k *Keys) Tally() *auth.Tally { return &k.tally }

// Lookup returns the copy of the key's record, or asks the store below and keeps a copy of what it
// says. Keys that are unknown, revoked or expired are not kept.
func (k *Keys) Lookup(ctx context.Context, projectID string, h auth.Hash) (auth.Record, error) {
	name := k.sealer.names(projectID, h)[0]
	value, err := k.redis.Get(ctx, name).Bytes()
	reached := err == nil || errors.Is(err, redis.Nil)
	changed := false
	switch {
	case !reached:
		k.tally.Fault()
	case isTombstone(value):
		changed = k.recent(k.sealer.openTombstone(value, projectID, h))
		k.tally.Miss()
	default:
		if r, ok := k.sealer.open(value, projectID, h); ok && k.believed(r, h.Shard()) {
			k.tally.Hit()
			return r, nil
		}
		k.tally.Miss()
	}

	r, err := k.below.Lookup(ctx, projectID, h)
	if _, refused := errors.AsType[auth.Refusal](err); err != nil {
		if changed && !refused {
			err = fmt.Errorf("%w: %w", auth.ErrChanged, err)
		}
		return auth.Record{}, err
	}
	if reached && !isTombstone(value) {
		k.keep(ctx, name, r, h)
	}
	return r, nil
}

// believed tells whether a copy's reading is within the TTL, not from the future, and by any process's clock
// after the last change of the shard that was heard of.
func (k *Keys) believed(r auth.Record, shard byte) bool {
	age := k.now().Sub(r.ReadAt)
	heard := k.heard[shard].Load()
	return age < k.ttl && age > -skew && (heard == 0 || r.ReadAt.UnixMicro() > heard+skew.Microseconds())
}

// Changed says that a key of the shard has changed: copies that may be older are not believed any more.
func (k *Keys) Changed(shard byte) { k.heard[shard].Store(k.now().UnixMicro()) }

// recent tells whether a tombstone's change is one that copies may be older than. An old one that was
// put back is not.
func (k *Keys) recent(at time.Time, ok bool) bool {
	age := k.now().Sub(at)
	return ok && age < k.ttl+2*skew && age > -skew
}

// fill keeps a copy, unless a tombstone stands in its place.
const fill = `
local held = redis.call('GETRANGE', KEYS[1], 0, 0)
if held == 'T' then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`

// keep stores a copy of r for as long as it is believed. When that fails the next one asks again.
func (k *Keys) keep(ctx context.Context, name string, r auth.Record, h auth.Hash) {
	now := k.now()
	left := k.ttl - now.Sub(r.ReadAt)
	if left < time.Millisecond || !r.Active(now) {
		return
	}
	if err := k.fill.Run(ctx, k.redis, []string{name}, k.sealer.seal(r, h), left.Milliseconds()).Err(); err != nil {
		k.tally.Fault()
	}
}

// Announce tells all processes that the project's key with that hash has changed: copies in Redis are
// replaced by tombstones, and each process drops its own. It tries for about a second.
func (k *Keys) Announce(ctx context.Context, projectID string, h auth.Hash) error {
	return announce(ctx, k.redis, k.sealer, projectID, h, k.ttl, k.now)
}

// Announcer announces changes of keys, for those who change them and look none up.
type Announcer struct {
	redis  redis.UniversalClient
	sealer sealer
	ttl    time.Duration
	now    func() time.Time
}

// NewAnnouncer makes an Announcer; the arguments are those of [New] in the processes that look keys
// up.
func NewAnnouncer(client redis.UniversalClient, secrets []config.Secret, ttl time.Duration, now func() time.Time) *Announcer {
	return &Announcer{redis: client, sealer: newSealer(secrets), ttl: ttl, now: now}
}

// Announce does what [Keys.Announce] does.
func (a *Announcer) Announce(ctx context.Context, projectID string, h auth.Hash) error {
	return announce(ctx, a.redis, a.sealer, projectID, h, a.ttl, a.now)
}

func announce(ctx context.Context, client redis.UniversalClient, s sealer, projectID string, h auth.Hash, ttl time.Duration, now func() time.Time) error {
	const attempts = 4
	var err error
	for attempt := range attempts {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return errors.Join(err, ctx.Err())
			case <-time.After(300 * time.Millisecond):
			}
		}
		if err = announceOnce(ctx, client, s, projectID, h, ttl, now()); err == nil {
			return nil
		}
	}
	return fmt.Errorf("announce a key's change: %w", err)
}

func announceOnce(ctx context.Context, client redis.UniversalClient, s sealer, projectID string, h auth.Hash, ttl time.Duration, now time.Time) error {
	var errs []error
	// Tombstones first: who hears of the change asks at once.
	for i, name := range s.names(projectID, h) {
		errs = append(errs, client.Set(ctx, name, s.tombstone(i, projectID, h, now), ttl+2*skew).Err())
	}
	errs = append(errs, client.Publish(ctx, channel, strconv.FormatUint(uint64(h.Shard()), 16)).Err())
	return errors.Join(errs...)
}
