package limits

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// leaseAhead is the time whose tokens a lease takes beyond the current requests. With 1000 requests a second, a key
	// asks Redis once in a hundred requests.
	leaseAhead = 100 * time.Millisecond

	// leaseTime is how long leased tokens may be used.
	leaseTime = 500 * time.Millisecond

	// steady is how long requests to Redis must succeed before the log reports that rates are kept again. In a cluster,
	// some requests may succeed while a part of the nodes is down.
	steady = time.Second
)

// Script runs [TakeScript] for a key in Redis with the arguments args, and returns the four numbers of its answer. Script
// names no type of go-redis, because the compiler would emit the methods of the type in each package that reaches a Limiter.
type Script func(ctx context.Context, key string, args ...any) ([]int64, error)

// lease holds the tokens that this process has leased from Redis for one limited key, such as an API key.
//
// Redis holds one value for each limited key, and one script changes this value, on the clock of Redis. The script
// counts in millionths of a token, so all its numbers are integers and no rate is rounded.
//
// With the token for the current request, the process takes the tokens that the rate earns in a tenth of a second. The
// process uses the leased tokens for half a second without asking Redis. Leased tokens count as used. The next request to
// Redis returns unused tokens. Tokens beyond the current requests come only from the first half of the burst. So leases
// never take the last tokens from a process that needs them.
//
// Thus all processes together allow at most the burst, plus the tokens that the rate earns, plus the tokens of earlier
// leases. For each process, the tokens of earlier leases are at most those of a tenth of a second.
type lease struct {
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
func (b *lease) take(ctx context.Context, l *Limiter, key string, rate Rate) Result {
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	b.mu.Lock()
	defer b.mu.Unlock()

	now := l.o.Now()
	leased := b.rate == rate && b.tokens > 0 && now.Before(b.expires)
	refused := b.rate == rate && now.Before(b.none)
	if !leased && !refused {
		if !b.renew(ctx, l, key, rate) {
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

// renew returns unused tokens to Redis and takes new tokens. renew asks for a token for each waiting request, and for
// the tokens that the rate earns in a tenth of a second. renew reports whether Redis answered.
func (b *lease) renew(ctx context.Context, l *Limiter, key string, rate Rate) bool {
	asked := l.o.Now()
	ahead := int(int64(rate.PerSecond) * int64(leaseAhead) / int64(time.Second))
	g, ok := l.ask(ctx, "lectern:rate:{"+key+"}", rate, int(b.waiting.Load()), ahead, b.tokens)
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
func (b *lease) allowed(rate Rate, now time.Time) Result {
	full := max(b.reset.Sub(now), time.Second/time.Duration(rate.PerSecond)) // the token of this request is used as well
	left := rate.Burst - int((int64(full/time.Microsecond)*int64(rate.PerSecond)+999_999)/1_000_000)
	return Result{Rate: rate, Allowed: true, Remaining: min(max(b.remaining, left)+b.tokens, rate.Burst-1), ResetAfter: full}
}

// grant is the answer of TakeScript to a request for tokens.
type grant struct {
	tokens     int           // leased: at most need and ahead together
	remaining  int           // still in Redis
	retryAfter time.Duration // until the next token, if tokens is 0
	resetAfter time.Duration
}

// ask returns unused tokens to Redis. Then ask takes up to need tokens, and up to ahead tokens more. ask reports
// whether Redis answered. ask continues when ctx is cancelled, because other requests wait for the answer. The client
// of Redis bounds the time of ask.
func (l *Limiter) ask(ctx context.Context, name string, rate Rate, need, ahead, unused int) (grant, bool) {
	n, err := l.run(context.WithoutCancel(ctx), name, rate.PerSecond, rate.Burst, need, ahead, unused)
	if err != nil || len(n) != 4 {
		l.failed.Store(l.o.Now().UnixNano())
		if !l.failing.Swap(true) {
			l.o.Log.WarnContext(ctx, "rates cannot be kept; all requests are allowed", slog.Any("error", err))
		}
		return grant{}, false
	}
	if l.failing.Load() && l.o.Now().UnixNano()-l.failed.Load() > int64(steady) && l.failing.Swap(false) {
		l.o.Log.InfoContext(ctx, "rates are kept again")
	}
	return grant{
		tokens:     int(min(n[0], math.MaxInt32)),
		remaining:  int(n[1]),
		retryAfter: time.Duration(n[2]) * time.Microsecond,
		resetAfter: time.Duration(n[3]) * time.Microsecond,
	}, true
}

// TakeScript takes tokens. KEYS[1] holds "debt:at": the used tokens that are not earned back, in millionths, at a time
// in microseconds of the clock of Redis. At a rate of r tokens a second, r millionths are earned back each microsecond.
// ARGV: rate, burst, need, ahead, unused. The script returns the tokens taken, the tokens that remain, and the
// microseconds until the next token and until the whole burst.
//
// The script returns unused tokens first, as if they had never been taken. The script takes tokens ahead only from the
// first half of the burst.
const TakeScript = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local rate, burst, need, ahead, unused = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local full = burst * 1000000
local debt, at = 0, now
local held = redis.call('GET', KEYS[1])
if held then
  local d, a = string.match(held, '^(%d+):(%d+)$')
  if d then debt, at = tonumber(d), tonumber(a) end
end
local earned = math.max(0, now - at) * rate + unused * 1000000
if earned >= debt then debt = 0 else debt = debt - earned end
if debt > full then debt = full end
local free = math.floor((full - debt) / 1000000)
local taken = math.min(need, free)
taken = taken + math.max(0, math.min(ahead, free - taken - math.ceil(burst / 2)))
local wait = 0
if taken > 0 then
  debt = debt + taken * 1000000
  redis.call('SET', KEYS[1], string.format('%.0f:%.0f', debt, now), 'PX', math.ceil(debt / rate / 1000) + 1)
else
  wait = math.ceil((debt + 1000000 - full) / rate)
end
return {taken, free - taken, wait, math.ceil(debt / rate)}
`
