// Package cache caches the zones of projects in the process, so that operation 9 needs no database for a cached
// project. It promises:
//
//   - A change is seen once the cached copy is older than TTL.
//   - A copy that is in use is renewed in the background, from half its TTL on.
//   - Concurrent requests for the same project share one look-up.
//   - While the source fails, a copy is served until it is older than Stale, and the source is tried
//     once a second for each project.
package cache

import (
	"cmp"
	"context"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/lectern-dev/lectern/shared/config"

	"github.com/lectern-dev/lectern/services/region/internal/zone"
)

// Options bound the age and the number of cached zones.
type Options struct {
	// How long a cached region is used before it is read from Postgres again.
	TTL time.Duration `env:"REGION_CACHE_TTL" envDefault:"5s"`

	// Stale is the greatest age of a region that is served while Postgres cannot be reached. Tests set it; 0: 10 minutes,
	// longer than a failover.
	Stale time.Duration `env:"-"`

	// Size is how many regions are cached in process. Tests set it; 0: 100,000, some 30 MB.
	Size int `env:"-"`
}

// Validate reports a TTL that is out of range.
func (o Options) Validate() error {
	if o.TTL < 10*time.Millisecond || o.TTL > time.Hour {
		return config.Invalid("REGION_CACHE_TTL", o.TTL, "a duration from 10ms to 1h")
	}
	return nil
}

const (
	// usualSize is the usual Size, at some 300 bytes each.
	usualSize = 100_000

	// loadTimeout bounds one look-up at the source.
	loadTimeout = 2 * time.Second

	// renewTimeout bounds how long a request that has a copy waits for a newer one.
	renewTimeout = 200 * time.Millisecond

	// retryAfter is the pause after a failed look-up of a project that has a copy.
	retryAfter = time.Second
)

// Source looks up the zone of a project.
type Source func(ctx context.Context, projectID string) (zone.Zone, error)

// Cache keeps zones by project. It is safe for concurrent use.
type Cache struct {
	copies copies
	source otter.Loader[string, entry]
}

// copies is a cache of copies by project. The interface hides otter's Cache, because the compiler emits its 200 methods in
// each package that reaches its type.
type copies interface {
	Get(ctx context.Context, projectID string, l otter.Loader[string, entry]) (entry, error)
	Refresh(ctx context.Context, projectID string, l otter.Loader[string, entry]) <-chan otter.RefreshResult[string, entry]
	StopAllGoroutines() bool
}

// entry is a copy of a zone.
type entry struct {
	zone     zone.Zone
	loadedAt time.Time // when the source was asked
	useUntil time.Time // from then on, a request first tries to renew the copy
}

// New returns a Cache over source. The caller closes it.
func New(source Source, o Options) *Cache {
	kept := max(o.TTL, cmp.Or(o.Stale, 10*time.Minute))
	return &Cache{
		source: loader{source: source, ttl: o.TTL},
		copies: otter.Must(&otter.Options[string, entry]{
			MaximumSize: cmp.Or(o.Size, usualSize),
			ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[string, entry]) time.Duration {
				return max(1, time.Until(e.Value.loadedAt.Add(kept))) // otter never expires an entry after 0 or less
			}),
			RefreshCalculator: otter.RefreshWriting[string, entry](o.TTL / 2),
		}),
	}
}

// Close stops the cache's own goroutines.
func (c *Cache) Close() { c.copies.StopAllGoroutines() }

// Get returns the zone of a project. Its error is the source's, or ctx's.
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

// loader is the cache's [otter.Loader].
type loader struct {
	source Source
	ttl    time.Duration
}

// Load looks up a project that has no copy.
func (l loader) Load(ctx context.Context, projectID string) (entry, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	now := time.Now()
	found, err := l.source(ctx, projectID)
	return entry{zone: found, loadedAt: now, useUntil: now.Add(l.ttl)}, err
}

// Reload renews a copy. If the source fails, the copy stays in use for the pause before the next attempt.
func (l loader) Reload(ctx context.Context, projectID string, old entry) (entry, error) {
	renewed, err := l.Load(ctx, projectID)
	if err != nil {
		old.useUntil = time.Now().Add(min(l.ttl, retryAfter))
		return old, nil
	}
	return renewed, nil
}
