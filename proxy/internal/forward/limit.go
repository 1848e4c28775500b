package forward

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/ratelimit"
)

// enter counts the request against the limits of the endpoint that was decided on. The caller calls leave at the end of
// the request.
func (h *Handler) enter(ctx context.Context, e *policy.Endpoint) (leave func(), err error) {
	if e.Limits.PerSecond > 0 {
		rate := h.o.Rates.Allow(ctx, "proxy:"+e.Name, ratelimit.Rate{PerSecond: e.Limits.PerSecond, Burst: e.Limits.Burst})
		if !rate.Allowed {
			return nil, tooMany("too many requests come to this endpoint", max(rate.RetryAfter, time.Millisecond))
		}
	}
	g := h.gates.of(e.Name)
	if n := g.Add(1); e.Limits.Concurrent > 0 && n > int64(e.Limits.Concurrent) {
		g.Add(-1)
		return nil, tooMany("too many requests to this endpoint run at a time", time.Second)
	}
	return func() { g.Add(-1) }, nil
}

// gates counts the requests in flight, by endpoint.
type gates struct{ counts sync.Map }

func (g *gates) of(endpoint string) *atomic.Int64 {
	if n, ok := g.counts.Load(endpoint); ok {
		return n.(*atomic.Int64)
	}
	n, _ := g.counts.LoadOrStore(endpoint, new(atomic.Int64))
	return n.(*atomic.Int64)
}

// keep forgets all endpoints but these.
func (g *gates) keep(names map[string]bool) {
	g.counts.Range(func(name, _ any) bool {
		if !names[name.(string)] {
			g.counts.Delete(name)
		}
		return true
	})
}

// buckets keeps rates in this process alone, by the generic cell rate algorithm: for a proxy without Redis.
type buckets struct {
	now func() time.Time

	mu  sync.Mutex
	due map[string]time.Time // when the bucket will be full again
}

func newBuckets(now func() time.Time) *buckets {
	return &buckets{now: now, due: map[string]time.Time{}}
}

// Allow asks for one request of key at the rate.
func (b *buckets) Allow(_ context.Context, key string, rate ratelimit.Rate) ratelimit.Result {
	if rate.PerSecond <= 0 {
		return ratelimit.Result{Allowed: true}
	}
	rate.Burst = max(1, rate.Burst)
	every := time.Second / time.Duration(rate.PerSecond)
	room := every * time.Duration(rate.Burst)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	due := b.due[key]
	if due.Before(now) {
		due = now
	}
	next := due.Add(every)
	if over := next.Sub(now) - room; over > 0 {
		return ratelimit.Result{Rate: rate, ResetAfter: due.Sub(now), RetryAfter: over}
	}
	b.due[key] = next
	return ratelimit.Result{Rate: rate, Allowed: true, Remaining: int((room - next.Sub(now)) / every), ResetAfter: next.Sub(now)}
}
