package limits

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// bucket holds the tokens that this process has leased from Redis for one limited key, such as an API key.
type bucket struct {
	name    string       // of the key in Redis
	waiting atomic.Int64 // requests inside take

	mu      sync.Mutex
	rate    Rate      // of the lease
	tokens  int       // leased and not used yet
	expires time.Time // when the lease ends
	none    time.Time // Redis has no token before this time

	remaining int       // tokens in Redis when it was last asked
	reset     time.Time // when the whole burst is available again
}

// take uses a leased token for a request. Without a leased token, take asks Redis for a new lease, unless Redis has no
// token yet by its last answer. Requests that arrive in the meantime wait for the lock, and the next lease has a token
// for each of these requests.
func (b *bucket) take(ctx context.Context, l *Limiter, rate Rate) Result {
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	b.mu.Lock()
	defer b.mu.Unlock()

	now := l.o.Now()
	leased := b.rate == rate && b.tokens > 0 && now.Before(b.expires)
	refused := b.rate == rate && now.Before(b.none)
	if !leased && !refused {
		if !b.lease(ctx, l, rate) {
			return unlimited(rate)
		}
		now = l.o.Now()
	}
	if b.tokens == 0 {
		return Result{Rate: rate, ResetAfter: max(0, b.reset.Sub(now)), RetryAfter: max(time.Microsecond, b.none.Sub(now))}
	}
	b.tokens--
	return b.allowed(rate, now)
}

// lease returns unused tokens to Redis and takes new tokens. lease asks for a token for each waiting request, and for
// the tokens that the rate earns in a tenth of a second. lease reports whether Redis answered.
func (b *bucket) lease(ctx context.Context, l *Limiter, rate Rate) bool {
	asked := l.o.Now()
	ahead := int(int64(rate.PerSecond) * int64(leaseAhead) / int64(time.Second))
	g, ok := l.ask(ctx, b.name, rate, int(b.waiting.Load()), ahead, b.tokens)
	b.rate, b.tokens = rate, g.tokens
	if !ok {
		return false
	}
	answered := l.o.Now()
	b.expires = asked.Add(leaseTime)
	b.remaining = g.remaining
	b.reset = answered.Add(g.resetAfter)
	if g.tokens == 0 {
		b.none = answered.Add(g.retryAfter)
	}
	return true
}

// allowed returns the result for a request that got a token. allowed counts the tokens that the rate has earned since
// Redis answered.
func (b *bucket) allowed(rate Rate, now time.Time) Result {
	full := max(b.reset.Sub(now), time.Second/time.Duration(rate.PerSecond)) // the token of this request is used as well
	left := rate.Burst - int((int64(full/time.Microsecond)*int64(rate.PerSecond)+999_999)/1_000_000)
	return Result{Rate: rate, Allowed: true, Remaining: min(max(b.remaining, left)+b.tokens, rate.Burst-1), ResetAfter: full}
}
