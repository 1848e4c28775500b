// Package cache caches the zones of projects in the process, so that the look-up of a region needs no database for a
// cached project. The cache promises:
//
//   - A change is visible once the cached copy is older than TTL, as long as the source answers within 200 ms.
//   - A copy that is in use is renewed in the background, from half its TTL on.
//   - Concurrent requests for the same project share one look-up.
//   - While the source fails, the cache serves a copy until the copy is older than 10 minutes. The next try for a project
//     that is asked for comes after a second, or after TTL if TTL is shorter.
package cache

import (
	"context"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/lectern-dev/lectern/shared/config"

	"github.com/lectern-dev/lectern/services/region/internal/zone"
)

// Options holds the settings of a Cache.
type Options struct {
	// How long a cached region is used before it is read from Postgres again.
	TTL time.Duration `env:"REGION_CACHE_TTL" envDefault:"5s"`
}

// Validate reports a REGION_CACHE_TTL that is not from 10 ms to 1 h.
func (o Options) Validate() error {
	if o.TTL < 10*time.Millisecond || o.TTL > time.Hour {
		return config.Invalid("REGION_CACHE_TTL", o.TTL, "a duration from 10ms to 1h")
	}
	return nil
}

const (
	// capacity is how many zones the process caches: some 30 MB when full.
	capacity = 100_000

	// stale is the greatest age of a zone that is served while Postgres cannot be reached, and is longer than a failover. A
	// longer TTL takes its place.
	stale = 10 * time.Minute

	// loadTimeout bounds one look-up at the source.
	loadTimeout = 2 * time.Second

	// renewTimeout bounds how long a request that has an old copy waits for a newer copy.
	renewTimeout = 200 * time.Millisecond

	// retryAfter is the longest pause after a failed look-up at the source for a project that has a copy.
	retryAfter = time.Second
)

// Source looks up the zone of a project in the database. A Cache calls its Source for a project without a copy, and
// to renew a copy.
type Source func(ctx context.Context, projectID string) (zone.Zone, error)

// Cache keeps copies of the zones of projects. A Cache is safe for concurrent use.
type Cache struct {
	copies copies
	source otter.Loader[string, entry]
}

// copies is the part of otter's Cache that [Cache] uses. The interface hides otter's type, because the compiler emits
// its 200 methods in each package that reaches the type.
type copies interface {
	Get(ctx context.Context, projectID string, l otter.Loader[string, entry]) (entry, error)
	Refresh(ctx context.Context, projectID string, l otter.Loader[string, entry]) <-chan otter.RefreshResult[string, entry]
	StopAllGoroutines() bool
}

// entry is a cached copy of a project's zone.
type entry struct {
	zone     zone.Zone
	loadedAt time.Time // when the source was asked
	useUntil time.Time // after this time, a request first tries to renew the copy
}

// New returns a Cache of the zones that source looks up. The caller closes the Cache.
func New(source Source, o Options) *Cache {
	kept := max(o.TTL, stale)
	return &Cache{
		source: loader{source: source, ttl: o.TTL},
		copies: otter.Must(&otter.Options[string, entry]{
			MaximumSize: capacity,
			ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[string, entry]) time.Duration {
				return max(1, time.Until(e.Value.loadedAt.Add(kept))) // otter never expires an entry after 0 or less
			}),
			RefreshCalculator: otter.RefreshWriting[string, entry](o.TTL / 2),
		}),
	}
}

// Close stops the goroutines of the cache.
func (c *Cache) Close() { c.copies.StopAllGoroutines() }

// Get returns the zone of a project, from a copy if there is one. If the copy is due for renewal, Get first waits up to
// 200 ms for a newer copy. Without a copy, the error is that of the source or of ctx. With a copy, there is no error.
func (c *Cache) Get(ctx context.Context, projectID string) (zone.Zone, error) {
	found, err := c.copies.Get(ctx, projectID, c.source)
	if err != nil || time.Now().Before(found.useUntil) {
		return found.zone, err
	}
	timeout := time.NewTimer(renewTimeout)
	defer timeout.Stop()
	select {
	case renewed := <-c.copies.Refresh(ctx, projectID, c.source):
		if renewed.Err == nil {
			return renewed.Value.zone, nil
		}
	case <-timeout.C:
	case <-ctx.Done():
	}
	return found.zone, nil
}

// loader is the [otter.Loader] of a Cache: it makes and renews copies.
type loader struct {
	source Source
	ttl    time.Duration
}

// Load asks the source for the zone of a project, for at most loadTimeout. Load returns a new copy that is usable for
// the TTL.
func (l loader) Load(ctx context.Context, projectID string) (entry, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	now := time.Now()
	found, err := l.source(ctx, projectID)
	return entry{zone: found, loadedAt: now, useUntil: now.Add(l.ttl)}, err
}

// Reload looks up a project that has a copy. If the source fails, Reload returns the old copy, which is then used
// until the next attempt.
func (l loader) Reload(ctx context.Context, projectID string, old entry) (entry, error) {
	renewed, err := l.Load(ctx, projectID)
	if err != nil {
		old.useUntil = time.Now().Add(min(l.ttl, retryAfter))
		return old, nil
	}
	return renewed, nil
}
