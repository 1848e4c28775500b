package limits

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
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

	// Now is the clock of the process. Rates in Redis use the clock of Redis, and Now for leases only. Default: time.Now.
	Now func() time.Time
}

// maxKeys bounds the keys whose tokens a process keeps. Over the bound, the process drops the least used keys with their
// tokens.
const maxKeys = 100_000

// Limiter limits how often a key may be used, by the generic cell rate algorithm in its continuous-state leaky bucket form
// (ITU-T I.371, annex A). With Redis, the rate is one for all processes together: see [lease]. While Redis is down, every
// request is allowed. A nil Limiter allows every request. Several goroutines may use a Limiter at the same time.
type Limiter struct {
	run    Script // nil: the rates are those of this process
	o      LimiterOptions
	leases cache[lease]  // with Redis
	local  cache[tokens] // without Redis

	refused atomic.Int64
	failing atomic.Bool
	failed  atomic.Int64 // when Redis last failed, in Unix nanoseconds
}

// NewLimiter returns a Limiter that keeps rates in Redis, where run runs [TakeScript]. If run is nil, the Limiter keeps rates
// in this process alone.
func NewLimiter(run Script, o LimiterOptions) *Limiter {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Limiter{run: run, o: o, leases: newCache[lease](maxKeys), local: newCache[tokens](maxKeys)}
}

// Allow reports whether key may make one more request at the rate, and counts an allowed request. A rate of 0 allows
// any number. If Redis fails, Allow allows the request.
func (l *Limiter) Allow(ctx context.Context, key string, rate Rate) Result {
	if rate.PerSecond <= 0 {
		return Result{Allowed: true}
	}
	rate.Burst = max(1, rate.Burst)
	if l == nil {
		return unlimited(rate)
	}
	var r Result
	if l.run != nil {
		r = of(l.leases, key).take(ctx, l, key, rate)
	} else {
		r = of(l.local, key).take(l.o.Now(), rate)
	}
	if !r.Allowed {
		l.refused.Add(1)
	}
	return r
}

// Refused returns how many requests the Limiter has refused so far.
func (l *Limiter) Refused() int64 {
	if l == nil {
		return 0
	}
	return l.refused.Load()
}

// unlimited returns the result for a request that is allowed because Redis is missing or fails.
func unlimited(rate Rate) Result { return Result{Rate: rate, Allowed: true, Remaining: rate.Burst} }

// cache keeps the state of keys. The interface hides otter's Cache type. The compiler emits the methods of Cache in each
// package that reaches the type.
type cache[V any] interface {
	GetIfPresent(key string) (*V, bool)
	SetIfAbsent(key string, v *V) (*V, bool)
}

// newCache returns a cache that drops the least used keys over most.
func newCache[V any](most int) cache[V] {
	return otter.Must(&otter.Options[string, *V]{MaximumSize: most})
}

// of returns the state of a key. A new key has the zero state.
func of[V any](c cache[V], key string) *V {
	v, ok := c.GetIfPresent(key)
	if !ok {
		v, _ = c.SetIfAbsent(key, new(V))
	}
	return v
}

// tokens are those of one key in this process.
type tokens struct {
	mu   sync.Mutex
	full time.Time // when the whole burst is available again
}

// next returns when the whole burst is available again after one more token, and how long this token is not earned yet.
func (t *tokens) next(now time.Time, rate Rate) (full time.Time, lacks time.Duration) {
	every := time.Second / time.Duration(rate.PerSecond)
	full = now
	if t.full.After(now) {
		full = t.full
	}
	full = full.Add(every)
	return full, full.Sub(now) - every*time.Duration(rate.Burst)
}

// take uses a token for a request, if there is one.
func (t *tokens) take(now time.Time, rate Rate) Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	full, lacks := t.next(now, rate)
	if lacks > 0 {
		return Result{Rate: rate, ResetAfter: t.full.Sub(now), RetryAfter: lacks}
	}
	t.full = full
	return Result{Rate: rate, Allowed: true, Remaining: int(-lacks / (time.Second / time.Duration(rate.PerSecond))), ResetAfter: full.Sub(now)}
}
