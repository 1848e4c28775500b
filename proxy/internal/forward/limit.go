package forward

import (
	"context"
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
	return h.takeSlot(limits.Endpoint(e.Name), e.Limits.Concurrent, "too many requests to this endpoint run at a time")
}

// admit counts a request without a key against the limit of its client, before the proxy reads the body. The zero client has
// no limit. The caller must call leave at the end of the request.
func (h *Handler) admit(client limits.Holder) (leave func(), err error) {
	return h.takeSlot(client, h.o.ClientConcurrent, "too many requests of this client address run at a time")
}

// takeSlot takes one of the slots of a holder. The function leave gives the slot back. If all slots are taken, takeSlot
// refuses the request with the reason full. A limit of 0 is no limit.
func (h *Handler) takeSlot(of limits.Holder, limit int, full string) (leave func(), err error) {
	slot := limits.Share{Holder: of, Most: int64(limit)}
	if err := h.running.Take(1, slot); err != nil {
		return nil, tooMany(full, time.Second)
	}
	return func() { h.running.Give(1, slot) }, nil
}
