package forward

import (
	"context"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/shared/limits"
)

// buckets limits rates in this process alone, by the generic cell rate algorithm, for a proxy without Redis.
type buckets struct {
	now func() time.Time

	mu  sync.Mutex
	due map[string]time.Time // when the bucket will be full again
}

func newBuckets(now func() time.Time) *buckets {
	return &buckets{now: now, due: map[string]time.Time{}}
}

// Allow reports whether the rate allows a request of key, and counts the request if so. A rate of 0 requests per second
// is no limit, and a burst of 0 counts as 1.
func (b *buckets) Allow(_ context.Context, key string, rate limits.Rate) limits.Result {
	if rate.PerSecond <= 0 {
		return limits.Result{Allowed: true}
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
		return limits.Result{Rate: rate, ResetAfter: due.Sub(now), RetryAfter: over}
	}
	b.due[key] = next
	return limits.Result{Rate: rate, Allowed: true, Remaining: int((room - next.Sub(now)) / every), ResetAfter: next.Sub(now)}
}
