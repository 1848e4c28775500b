package forward

import (
	"context"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/limits"
)

// enter counts the request against the limits of its endpoint. The caller must call leave at the end of the request.
// The error is the refusal of a request over a limit.
func (h *Handler) enter(ctx context.Context, e *policy.Endpoint) (leave func(), err error) {
	if e.Limits.PerSecond > 0 {
		rate := h.o.Rates.Allow(ctx, "proxy:"+e.Name, limits.Rate{PerSecond: e.Limits.PerSecond, Burst: e.Limits.Burst})
		if !rate.Allowed {
			return nil, tooMany("too many requests come to this endpoint", max(rate.RetryAfter, time.Millisecond))
		}
	}
	return h.takeSlot(holder{ofEndpoint, e.Name}, e.Limits.Concurrent, "too many requests to this endpoint run at a time")
}

// admit counts a request without a key against the limit of its client, before the proxy reads the body. client is the
// client's network, as limits.NetworkOf returns it; for "" there is no limit. The caller must call leave at the end of
// the request.
func (h *Handler) admit(client string) (leave func(), err error) {
	if client == "" {
		return func() {}, nil
	}
	return h.takeSlot(holder{ofClient, client}, h.o.ClientConcurrent, "too many requests of this client address run at a time")
}

// takeSlot takes one of the slots of a holder. The function leave gives the slot back. If all slots are taken, takeSlot
// refuses the request with the reason full. A limit of 0 is no limit.
func (h *Handler) takeSlot(of holder, limit int, full string) (leave func(), err error) {
	if limit == 0 {
		return func() {}, nil
	}
	slot := share{of, int64(limit)}
	if _, ok := h.running.take(1, slot); !ok {
		return nil, tooMany(full, time.Second)
	}
	return func() { h.running.give(1, slot) }, nil
}

// usage counts how much of a resource, in slots or bytes, each holder has taken. A holder that has taken nothing has no
// entry.
type usage struct {
	mu   sync.Mutex
	held map[holder]int64
}

// holder takes shares of a resource: an endpoint, a client, or all requests together.
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

// share is one holder of a resource, and the limit of its slots or bytes.
type share struct {
	holder
	limit int64
}

func newUsage() *usage { return &usage{held: map[holder]int64{}} }

// take adds n to the count of each share's holder. If a count would exceed the limit of its share, take adds nothing,
// and returns the kind of that holder and false.
func (u *usage) take(n int64, shares ...share) (full holderKind, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range shares {
		if u.held[s.holder]+n > s.limit {
			return s.kind, false
		}
	}
	for _, s := range shares {
		u.held[s.holder] += n
	}
	return 0, true
}

// give subtracts n from the count of each share's holder. n is an amount that the holders have taken.
func (u *usage) give(n int64, shares ...share) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range shares {
		if u.held[s.holder] -= n; u.held[s.holder] == 0 {
			delete(u.held, s.holder)
		}
	}
}
