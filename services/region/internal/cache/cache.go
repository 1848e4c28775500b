// Package cache keeps what was looked up in process, so that an answer that is warm costs no I/O. What
// it promises:
//
//   - A change that it is told of ([Cache.Changed]) is seen by every Get that begins afterwards.
//   - Any other change is seen when the copy is older than TTL at the latest.
//   - A value that is asked for all the time is renewed behind the requests: none of them waits.
//   - Many who ask for the same value at the same time cost one look-up.
//   - While the source fails, a copy that nobody called outdated is answered until it is older than
//     Stale; the source is tried once a second, and not once a request.
package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
)

// Options say how long a copy is believed.
type Options struct {
	// How long a region is believed without asking Postgres again, counted from when it was asked. A
	// change that came in through this service is seen at once.
	TTL time.Duration `env:"REGION_CACHE_TTL" envDefault:"5s"`

	// How old a region may be that is answered while Postgres is out of reach.
	Stale time.Duration `env:"REGION_CACHE_STALE" envDefault:"10m"`

	// How many regions are held in process, some 300 bytes each.
	Size int `env:"REGION_CACHE_SIZE" envDefault:"100000"`

	// Now is the clock. Nil: time.Now.
	Now func() time.Time `env:"-"`
}

// Validate reports every setting that is out of range.
func (o Options) Validate() error {
	var faults []error
	if o.TTL < 10*time.Millisecond || o.TTL > time.Hour {
		faults = append(faults, config.Invalid("REGION_CACHE_TTL", o.TTL, "a duration from 10ms to 1h"))
	}
	if o.Stale < 0 || o.Stale > 24*time.Hour {
		faults = append(faults, config.Invalid("REGION_CACHE_STALE", o.Stale, "a duration from 0s to 24h"))
	}
	if o.Size < 1 || o.Size > 10_000_000 {
		faults = append(faults, config.Invalid("REGION_CACHE_SIZE", o.Size, "an integer from 1 to 10000000"))
	}
	return errors.Join(faults...)
}

const (
	// loadLimit is how long one look-up may take.
	loadLimit = 2 * time.Second

	// patience is how long a request that could have a stale copy waits for a new one.
	patience = 200 * time.Millisecond

	// rest is how long a source that failed is left alone by those who have a copy.
	rest = time.Second
)

// Load looks a value up.
type Load[V any] func(ctx context.Context, key string) (V, error)

// Cache keeps values of V by their key. It may be used by several goroutines.
type Cache[V any] struct {
	load Load[V]
	o    Options
	log  *slog.Logger

	held    *otter.Cache[string, *held[V]]
	doubts  atomic.Int64 // how often there was doubt; copies of before must be asked for again
	resting atomic.Int64 // until then the source is left alone, in nanoseconds since begin
	begin   time.Time

	mu      sync.Mutex // also around every change of held, so that it agrees with flights
	flights map[string]*flight[V]
	closed  bool
	ctx     context.Context // of the look-ups; ends with Close
	cancel  context.CancelFunc
	loads   sync.WaitGroup
}

// held is a copy, with when it was asked for.
type held[V any] struct {
	value    V
	asked    time.Duration // since begin
	doubts   int64         // as many as the cache had
	renewing atomic.Bool
}

// flight is one look-up that any number of requests wait for. What it brought may be read when done is
// closed.
type flight[V any] struct {
	done     chan struct{}
	value    V
	err      error
	outdated bool // the value changed since; guarded by the cache's mu
}

// New returns a Cache over load. The caller closes it.
func New[V any](load Load[V], o Options, log *slog.Logger) *Cache[V] {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Cache[V]{
		load: load, o: o, log: log, begin: o.Now(), flights: map[string]*flight[V]{},
		held: otter.Must(&otter.Options[string, *held[V]]{MaximumSize: o.Size}),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close ends the look-ups under way. A Get afterwards finds only what is held.
func (c *Cache[V]) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.loads.Wait()
}

// now is the time since begin.
func (c *Cache[V]) now() time.Duration { return c.o.Now().Sub(c.begin) }

// Get returns the value of key. Its error is what Load returned, or the context's.
func (c *Cache[V]) Get(ctx context.Context, key string) (V, error) {
	now := c.now()
	copied, ok := c.held.GetIfPresent(key)
	if ok {
		resting := int64(now) < c.resting.Load()
		age := now - copied.asked
		switch {
		case age < c.o.TTL && copied.doubts == c.doubts.Load():
			if age > c.o.TTL/2 && !resting && copied.renewing.CompareAndSwap(false, true) {
				c.join(key)
			}
			return copied.value, nil
		case resting && age <= c.o.Stale:
			return copied.value, nil
		}
	}
	f := c.join(key)
	var impatient <-chan time.Time
	if ok && now-copied.asked <= c.o.Stale {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		impatient = timer.C
	}
	select {
	case <-f.done:
	case <-impatient:
		if value, ok := c.stale(key); ok {
			return value, nil
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return *new(V), ctx.Err()
		}
	case <-ctx.Done():
		return *new(V), ctx.Err()
	}
	if f.err == nil {
		return f.value, nil
	}
	if value, ok := c.stale(key); ok {
		return value, nil
	}
	return *new(V), f.err
}

// stale returns a copy for when nothing better can be had.
func (c *Cache[V]) stale(key string) (V, bool) {
	copied, ok := c.held.GetIfPresent(key)
	if !ok || c.now()-copied.asked > c.o.Stale {
		return *new(V), false
	}
	return copied.value, true
}

// Changed says that the value of key is another now. A copy is dropped, and a look-up that began before
// is of use only to those who wait for it already.
func (c *Cache[V]) Changed(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held.Invalidate(key)
	if f, ok := c.flights[key]; ok {
		f.outdated = true
		delete(c.flights, key)
	}
}

// Doubt says that changes may have been missed until now. Copies are asked for again before they are
// answered; they still serve while the source fails.
func (c *Cache[V]) Doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubts.Add(1)
	for _, f := range c.flights {
		f.outdated = true
	}
	clear(c.flights)
}

var errClosed = errors.New("the cache is closed")

// join returns the look-up of key under way, or begins one. It goes on when the request that began it
// ends: others may wait for it.
func (c *Cache[V]) join(key string) *flight[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.flights[key]; ok {
		return f
	}
	f := &flight[V]{done: make(chan struct{})}
	if c.closed {
		f.err = apierr.NotAvailable(errClosed)
		close(f.done)
		return f
	}
	c.flights[key] = f
	asked := c.now()
	c.loads.Go(func() { c.fly(key, f, asked) })
	return f
}

// fly looks key up and keeps what comes of it.
func (c *Cache[V]) fly(key string, f *flight[V], asked time.Duration) {
	ctx, cancel := context.WithTimeout(c.ctx, loadLimit)
	defer cancel()
	defer close(f.done)
	value, err := c.loadSafely(ctx, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flights[key] == f {
		delete(c.flights, key)
	}
	f.value, f.err = value, err
	switch {
	case err != nil:
		c.failed(key, err)
	case !f.outdated:
		c.held.Set(key, &held[V]{value: value, asked: asked, doubts: c.doubts.Load()})
	}
}

// loadSafely makes an error of a panic: there is no request here that would answer for it.
func (c *Cache[V]) loadSafely(ctx context.Context, key string) (value V, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("look-up panicked: %v", fault)
		}
	}()
	return c.load(ctx, key)
}

// failed lets the source rest, and the copy be renewed later.
func (c *Cache[V]) failed(key string, err error) {
	now := c.now()
	if int64(now) >= c.resting.Load() && c.ctx.Err() == nil {
		c.log.Warn("a look-up failed; copies are answered where there are any", slog.Any("error", err))
	}
	c.resting.Store(int64(now + rest))
	if copied, ok := c.held.GetIfPresent(key); ok {
		copied.renewing.Store(false)
	}
}
