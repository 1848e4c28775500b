package forward

import (
	"context"
	"sync"
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
	if e.Limits.Concurrent == 0 {
		return func() {}, nil
	}
	slot := share{holder{ofEndpoint, e.Name}, int64(e.Limits.Concurrent)}
	if _, ok := h.running.take(1, slot); !ok {
		return nil, tooMany("too many requests to this endpoint run at a time", time.Second)
	}
	return func() { h.running.give(1, slot) }, nil
}

// admit counts a request without a key against the bound of its client, from before its body is read. The caller calls
// leave at the end of the request. A client is what auth.Network makes of its address; "" has no bound.
func (h *Handler) admit(client string) (leave func(), err error) {
	if client == "" || h.o.ClientConcurrent == 0 {
		return func() {}, nil
	}
	slot := share{holder{ofClient, client}, int64(h.o.ClientConcurrent)}
	if _, ok := h.running.take(1, slot); !ok {
		return nil, tooMany("too many requests of this client address run at a time", time.Second)
	}
	return func() { h.running.give(1, slot) }, nil
}

// usage counts what holders have taken of a resource: slots, or bytes. A holder of nothing takes no memory.
type usage struct {
	mu   sync.Mutex
	held map[holder]int64
}

// holder is what a resource is counted for.
type holder struct {
	kind holderKind
	name string // of an endpoint, or a client's network
}

type holderKind uint8

const (
	ofAll holderKind = iota
	ofEndpoint
	ofClient
)

// share is a bound on what one holder may hold.
type share struct {
	holder
	most int64
}

func newUsage() *usage { return &usage{held: map[holder]int64{}} }

// take adds n to each share's holder, or to none of them when one would hold more than its share: then it returns that
// holder's kind, and false.
func (u *usage) take(n int64, shares ...share) (full holderKind, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range shares {
		if u.held[s.holder]+n > s.most {
			return s.kind, false
		}
	}
	for _, s := range shares {
		u.held[s.holder] += n
	}
	return 0, true
}

// give takes n from each share's holder.
func (u *usage) give(n int64, shares ...share) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range shares {
		if u.held[s.holder] -= n; u.held[s.holder] == 0 {
			delete(u.held, s.holder)
		}
	}
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
