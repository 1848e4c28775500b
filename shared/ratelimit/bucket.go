package ratelimit

import (
	"context"
	"sync"
	"time"
)

// bucket is what a process knows of one key: tokens that it has taken, or that there are none.
type bucket struct {
	name string // of the key in Redis

	mu     sync.Mutex
	rate   Rate          // at which they were taken
	tokens int           // taken and not handed out
	lapses time.Time     // when they may no more be handed out
	none   time.Time     // until then Redis has no token, whoever asks
	asking chan struct{} // closed when the question under way is answered; nil when there is none
	queued int           // requests that wait for it

	remaining int       // in Redis, when last asked
	reset     time.Time // when the whole burst is there again, as far as this process knows

	asked time.Time // when Redis was last asked
	spent int       // tokens handed out since
}

// take hands out a token, of those taken ahead or of Redis. One request at a time asks Redis; those
// that come meanwhile are asked for together, next.
func (b *bucket) take(ctx context.Context, l *Limiter, rate Rate) Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		now := l.o.Now()
		switch {
		case b.tokens > 0 && now.Before(b.lapses) && b.rate == rate:
			b.tokens--
			b.spent++
			return b.allowed(rate, now)
		case now.Before(b.none) && b.rate == rate:
			return Result{Rate: rate, ResetAfter: max(0, b.reset.Sub(now)), RetryAfter: b.none.Sub(now)}
		case b.asking != nil:
			if !b.wait(ctx) {
				return open(rate)
			}
		case !b.refill(ctx, l, rate, now):
			return open(rate)
		}
	}
}

// allowed is the answer to a request that got a token. What Redis had left when it was asked has grown since.
func (b *bucket) allowed(rate Rate, now time.Time) Result {
	full := max(b.reset.Sub(now), time.Second/time.Duration(rate.PerSecond)) // this one's token is to be earned, too
	left := rate.Burst - int((int64(full/time.Microsecond)*int64(rate.PerSecond)+999_999)/1_000_000)
	return Result{Rate: rate, Allowed: true, Remaining: min(max(b.remaining, left)+b.tokens, rate.Burst-1), ResetAfter: full}
}

// wait lets go of the lock until the question under way is answered. False: ctx ended first.
func (b *bucket) wait(ctx context.Context) bool {
	asking := b.asking
	b.queued++
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.queued--
	}()
	select {
	case <-asking:
		return true
	case <-ctx.Done():
		return false
	}
}

// refill asks Redis, without the lock, for as many tokens as requests wait for, and further ones: as many as recent
// use makes likely to be wanted soon, or few. False: Redis could not say.
func (b *bucket) refill(ctx context.Context, l *Limiter, rate Rate, now time.Time) bool {
	further, lease := b.likely(now, rate), l.o.Lease
	if few := min(rate.Burst/fewOf, mostFew); few > 0 && further <= few {
		further, lease = few, fewFor
	}
	need, unused := 1+b.queued, b.tokens
	asking := make(chan struct{})
	b.asking = asking
	b.mu.Unlock()
	defer close(asking)
	g, ok := l.ask(ctx, b.name, rate, need, further, unused)
	b.mu.Lock()
	b.asking, b.rate = nil, rate
	b.tokens, b.spent = g.tokens, 0
	// Counted from before the question, so that a slow answer does not make tokens live longer.
	b.asked, b.lapses = now, now.Add(lease)
	if !ok {
		return false
	}
	answered := l.o.Now()
	b.remaining = g.remaining
	b.reset = answered.Add(g.resetAfter)
	if g.tokens == 0 {
		b.none = answered.Add(g.retryAfter)
	} else if !answered.Before(b.lapses) {
		// The answer took longer than a lease. Who asked has it now all the same.
		b.lapses = answered.Add(time.Millisecond)
	}
	return true
}

// likely says how many tokens the time ahead will want, going by the use since Redis was last asked, and
// never more than the rate gives in that time. Nor more than twice that use: what a short burst seems to
// promise would be taken from others, and given back late.
func (b *bucket) likely(now time.Time, rate Rate) int {
	most := int(int64(rate.PerSecond) * int64(ahead) / int64(time.Second))
	since := now.Sub(b.asked)
	if b.asked.IsZero() || since <= 0 {
		return 0
	}
	return min(most, 2*b.spent, int(int64(b.spent)*int64(ahead)/int64(since)))
}
