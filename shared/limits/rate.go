package limits

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"
)

// MaxRate is the highest rate, in requests a second, that a setting or a key may have.
const MaxRate = 1_000_000_000

// Rate is a limit on requests: how many a second, and how many at once.
type Rate struct {
	PerSecond int // 0: any number, and nothing is counted
	Burst     int // at once, after an idle time; at least 1
}

// Result reports whether a request is allowed, and how many further requests would be allowed.
type Result struct {
	// Rate is the rate of the request, or the zero value if the request has no limit.
	Rate Rate

	Allowed    bool
	Remaining  int           // requests that would be allowed now, at least
	ResetAfter time.Duration // until the whole burst is available
	RetryAfter time.Duration // until one request is allowed; 0 if this one was
}

// LimiterOptions configures the log and the clock of a [Limiter]. The zero value is valid.
type LimiterOptions struct {
	// Log reports once when rates cannot be kept, and once when they are kept again. Default: nothing is logged.
	Log *slog.Logger

	// Now is the process's clock, for leases only. Default: time.Now.
	Now func() time.Time
}

const (
	// leaseAhead is the time whose tokens a lease takes beyond the current requests. With 1000 requests a second, a key
	// asks Redis once in a hundred requests.
	leaseAhead = 100 * time.Millisecond

	// leaseTime is how long leased tokens may be used.
	leaseTime = 500 * time.Millisecond

	// steady is how long requests to Redis must succeed before the log reports that rates are kept again. In a cluster,
	// some requests may succeed while a part of the nodes is down.
	steady = time.Second

	// maxBuckets bounds the keys for which a process holds leases. Over the bound, the process drops the least used
	// keys with their tokens.
	maxBuckets = 100_000
)

// Limiter limits how often a key may be used, over all processes together.
//
// The rate follows the generic cell rate algorithm in its continuous-state leaky bucket form (ITU-T I.371, annex A).
// Redis holds one value for each limited key, and one script changes this value, on the clock of Redis. The script
// counts in millionths of a token, so all its numbers are integers and no rate is rounded.
//
// A process leases tokens. With the token for the current request, the process takes the tokens that the rate earns in
// a tenth of a second. The process uses the leased tokens for half a second without asking Redis. Leased tokens count
// as used. The next request to Redis returns unused tokens. Tokens beyond the current requests come only from the first
// half of the burst. So leases never take the last tokens from a process that needs them.
//
// Thus all processes together allow at most the burst, plus the tokens that the rate earns, plus the tokens of earlier
// leases. For each process, the tokens of earlier leases are at most those of a tenth of a second.
//
// Without Redis, and while Redis is down, every request is allowed. The log has a line when Redis fails, and when it is
// back.
//
// Several goroutines may use a Limiter at the same time.
type Limiter struct {
	run     runScript // nil: everything is allowed
	o       LimiterOptions
	buckets buckets

	refused atomic.Int64
	failing atomic.Bool
	failed  atomic.Int64 // when Redis last failed, in Unix nanoseconds
}

// The types runScript and buckets name no type of go-redis and no instance of otter's Cache. Otherwise the compiler
// would emit the methods of these types in each package that reaches a Limiter.
type (
	// runScript runs takeScript for a key in Redis with the arguments args, and returns the four numbers of its answer.
	runScript func(ctx context.Context, key string, args ...any) ([]int64, error)

	// buckets is a cache that holds the bucket of each limited key.
	buckets interface {
		GetIfPresent(key string) (*bucket, bool)
		SetIfAbsent(key string, b *bucket) (*bucket, bool)
	}
)

// NewLimiter returns a Limiter that keeps rates in client. If client is nil, the Limiter allows every request.
func NewLimiter(client redis.Scripter, o LimiterOptions) *Limiter {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Limiter{o: o, buckets: otter.Must(&otter.Options[string, *bucket]{MaximumSize: maxBuckets})}
	if client != nil {
		script := redis.NewScript(takeScript)
		l.run = func(ctx context.Context, key string, args ...any) ([]int64, error) {
			return script.Run(ctx, client, []string{key}, args...).Int64Slice()
		}
	}
	return l
}

// Allow reports whether key may make one more request at the rate, and counts an allowed request. A rate of 0 allows
// any number. If Redis fails, Allow allows the request.
func (l *Limiter) Allow(ctx context.Context, key string, rate Rate) Result {
	if rate.PerSecond <= 0 {
		return Result{Allowed: true}
	}
	rate.Burst = max(1, rate.Burst)
	if l.run == nil {
		return unlimited(rate)
	}
	b, ok := l.buckets.GetIfPresent(key)
	if !ok {
		b, _ = l.buckets.SetIfAbsent(key, &bucket{name: "lectern:rate:{" + key + "}"})
	}
	r := b.take(ctx, l, rate)
	if !r.Allowed {
		l.refused.Add(1)
	}
	return r
}

// Refused returns how many requests the Limiter has refused so far.
func (l *Limiter) Refused() int64 { return l.refused.Load() }

// unlimited returns the result for a request that is allowed because Redis is missing or fails.
func unlimited(rate Rate) Result { return Result{Rate: rate, Allowed: true, Remaining: rate.Burst} }

// grant is the answer of takeScript to a request for tokens.
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

// takeScript takes tokens. KEYS[1] holds "debt:at": the used tokens that are not earned back, in millionths, at a time
// in microseconds of the clock of Redis. At a rate of r tokens a second, r millionths are earned back each microsecond.
// ARGV: rate, burst, need, ahead, unused. The script returns the tokens taken, the tokens that remain, and the
// microseconds until the next token and until the whole burst.
//
// The script returns unused tokens first, as if they had never been taken. The script takes tokens ahead only from the
// first half of the burst.
const takeScript = `
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
