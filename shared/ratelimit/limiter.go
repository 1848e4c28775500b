// Package ratelimit owns how often a key may ask, over all processes together.
//
// The rate is kept by the generic cell rate algorithm in its continuous-state leaky bucket form
// (ITU-T I.371, annex A) in one Redis key per limited key, by one script on Redis' clock. The script
// counts in millionths of a token, so all of its numbers are integers and no rate is rounded.
//
// A process takes several tokens at once when a key is busy and hands them out itself, which spares
// most requests the round trip. Tokens that it took count as used from then on; those not used within
// [Options].Lease are given back with the next question. Of a key that is not busy it takes a hundredth of the burst, at
// most fifty, and keeps them for minutes: where many keys are used seldom, each request would else cost a round
// trip. What is taken ahead leaves half of the burst to those who need it now.
//
// So all processes together give in any time at most the burst, what the rate earns in that time, and the few tokens
// that each of them kept from before; over a long time, the rate.
//
// Without Redis, or while it is down, every request is allowed: a rate is a courtesy among clients,
// and being unreachable is worse.
package ratelimit

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"
)

// Max is the highest rate and burst.
const Max = 1_000_000_000

// Rate is how often something is allowed.
type Rate struct {
	PerSecond int // 0: any number, and nothing is counted
	Burst     int // at once, after a time of none; at least 1
}

// Result says whether a request is allowed, and what is left.
type Result struct {
	// Rate is the one that was applied; its zero value when none was.
	Rate Rate

	Allowed    bool
	Remaining  int           // requests that would be allowed now, at least by what this process knows
	ResetAfter time.Duration // until the whole burst is there again, when nothing more is asked
	RetryAfter time.Duration // until one request is allowed; 0 when this one was
}

// Options is what a Limiter is given besides its Redis. The zero value is fit for use.
type Options struct {
	// Log hears when rates can not be kept and when they are again, once each. Default: nothing is
	// logged.
	Log *slog.Logger

	// Lease is how long tokens of a busy key that were taken ahead may be handed out. Default: 500 ms.
	Lease time.Duration

	// Now is the process's clock, for leases only. Default: time.Now.
	Now func() time.Time
}

const (
	// ahead is how much of a key's rate may be taken at once beyond what is asked for: half a default
	// lease, so that hardly a token lapses, and enough that a key of a hundred requests a second asks
	// for one in twenty-five.
	ahead = 250 * time.Millisecond

	// fewOf is the part of a burst that is too little to be missed by the other processes, or to be noticed
	// when it is used late; it may be kept for fewFor. It is at most mostFew.
	fewOf   = 100
	mostFew = 50
	fewFor  = 5 * time.Minute

	// steady is for how long every key's rate must have been kept before it is said that they are again: of
	// a cluster, a part may be down.
	steady = time.Second

	// maxBuckets is how many keys' tokens a process keeps track of; those least used are forgotten,
	// with their tokens.
	maxBuckets = 100_000
)

// Limiter allows or refuses requests by key. It may be used from many goroutines.
type Limiter struct {
	redis   redis.Scripter // nil: everything is allowed
	script  *redis.Script
	o       Options
	buckets *otter.Cache[string, *bucket]

	refused atomic.Int64
	failing atomic.Bool
	failed  atomic.Int64 // when Redis last could not say, in Unix nanoseconds
}

// New makes a Limiter that keeps rates in client, or allows everything when client is nil.
func New(client redis.Scripter, o Options) *Limiter {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Lease <= 0 {
		o.Lease = 500 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Limiter{
		redis:   client,
		script:  redis.NewScript(take),
		o:       o,
		buckets: otter.Must(&otter.Options[string, *bucket]{MaximumSize: maxBuckets}),
	}
}

// Allow asks for one request of key at the rate. The key names whom the rate is kept for; who shares
// it, shares the rate. When ctx ends first, the answer is that it is allowed.
func (l *Limiter) Allow(ctx context.Context, key string, rate Rate) Result {
	if rate.PerSecond <= 0 {
		return Result{Allowed: true}
	}
	rate.Burst = max(1, rate.Burst)
	if l.redis == nil {
		return open(rate)
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

// Refused returns how many requests were not allowed so far.
func (l *Limiter) Refused() int64 { return l.refused.Load() }

// open is the answer when no rate can be kept.
func open(rate Rate) Result { return Result{Rate: rate, Allowed: true, Remaining: rate.Burst} }

// grant is what the script answers.
type grant struct {
	tokens     int           // taken, at most as many as needed and wanted
	remaining  int           // still to be had
	retryAfter time.Duration // when none was to be had
	resetAfter time.Duration
}

// ask gives unused tokens back to Redis, and takes up to need and then up to further ones. It does not end with
// ctx: others wait for its answer, and the client bounds it.
func (l *Limiter) ask(ctx context.Context, name string, rate Rate, need, further, unused int) (grant, bool) {
	n, err := l.script.Run(context.WithoutCancel(ctx), l.redis, []string{name}, rate.PerSecond, rate.Burst, need, further, unused).Int64Slice()
	if err != nil || len(n) != 4 {
		l.failed.Store(l.o.Now().UnixNano())
		if !l.failing.Swap(true) {
			l.o.Log.WarnContext(ctx, "rates can not be kept; all requests are allowed", slog.Any("error", err))
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

// take is the script. KEYS[1] holds "debt:at": the tokens that are used and not yet earned back, in
// millionths, at a moment in microseconds of Redis' clock. ARGV: rate, burst, needed, wanted besides, given back. At a rate of r
// tokens a second, r millionths are earned back each microsecond. It answers how many tokens were
// taken, how many remain, and microseconds until the next one and until all are there.
//
// What is wanted besides comes out of the half of the burst that is used first. Tokens that are given back count as
// never taken: what was taken since a moment is at most the burst, what the rate gave, and what was given back; so
// what was used of it is at most the first two.
const take = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local rate, burst, need, further, unused = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
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
taken = taken + math.max(0, math.min(further, free - taken - math.ceil(burst / 2)))
local wait = 0
if taken > 0 then
  debt = debt + taken * 1000000
  redis.call('SET', KEYS[1], string.format('%.0f:%.0f', debt, now), 'PX', math.ceil(debt / rate / 1000) + 1)
else
  wait = math.ceil((debt + 1000000 - full) / rate)
end
return {taken, free - taken, wait, math.ceil(debt / rate)}
`
