package limits_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/redis/redisdb"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// counted is a client that counts its round trips.
type counted struct {
	redis.Scripter
	trips atomic.Int64
}

func (c *counted) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	c.trips.Add(1)
	return c.Scripter.EvalSha(ctx, sha, keys, args...)
}

// TestNeverAboveTheRateOverManyProcesses runs several limiters in parallel, like processes. Together they never allow
// more than the burst plus the tokens that the rate earns in the elapsed time.
func TestNeverAboveTheRateOverManyProcesses(t *testing.T) {
	server := redistest.Start(t)
	rate := limits.Rate{PerSecond: 2000, Burst: 500}
	const processes, clients = 4, 8
	var limiters []*limits.Limiter
	for range processes {
		limiters = append(limiters, limits.NewLimiter(redisdb.Script(redistest.Client(server), limits.TakeScript), limits.LimiterOptions{}))
	}
	var (
		allowed atomic.Int64
		wg      sync.WaitGroup
	)
	start := time.Now()
	for _, l := range limiters {
		for range clients {
			wg.Go(func() {
				for time.Since(start) < time.Second {
					if r := l.Allow(t.Context(), "key", rate); r.Allowed {
						allowed.Add(1)
					} else {
						time.Sleep(r.RetryAfter) // as a client with Retry-After does
					}
				}
			})
		}
	}
	wg.Wait()
	took := time.Since(start)
	most := int64(rate.Burst) + int64(took.Seconds()*float64(rate.PerSecond)) + 1
	if n := allowed.Load(); n > most {
		t.Errorf("%d allowed in %v, at most %d may be", n, took, most)
	}
}

// TestManyProcessesDoNotStarveEachOther checks that leases leave enough tokens if each of many processes uses a key
// only once.
func TestManyProcessesDoNotStarveEachOther(t *testing.T) {
	server := redistest.Start(t)
	rate := limits.Rate{PerSecond: 1, Burst: 2000}
	const processes = 200
	for i := range processes {
		l := limits.NewLimiter(redisdb.Script(redistest.Client(server), limits.TakeScript), limits.LimiterOptions{})
		for range 4 {
			if r := l.Allow(t.Context(), "key", rate); !r.Allowed {
				t.Fatalf("process %d: refused after %d of a burst of %d", i, 4*i, rate.Burst)
			}
		}
	}
}

// model is the leaky bucket algorithm with exact integers. A request takes one token, and then a lease: the tokens of a
// tenth of a second, from the first half of the burst.
type model struct {
	rate  limits.Rate
	level int64 // millionths of a token
	at    int64 // µs
}

func (m *model) allow(now int64) bool {
	if since := now - m.at; since > m.level/int64(m.rate.PerSecond) {
		m.level = 0
	} else {
		m.level -= since * int64(m.rate.PerSecond)
	}
	m.at = now
	if m.level+1_000_000 > int64(m.rate.Burst)*1_000_000 {
		return false
	}
	m.level += 1_000_000
	free := int64(m.rate.Burst) - (m.level+999_999)/1_000_000
	m.level += max(0, min(int64(m.rate.PerSecond/10), free-int64(m.rate.Burst+1)/2)) * 1_000_000
	return true
}

// TestScriptAgainstModel compares the script with the model, for any rate and any sequence of requests. The script uses
// the clock of Redis, so the test reads the times of the decisions from the stored value.
func TestScriptAgainstModel(t *testing.T) {
	server := redistest.Start(t)
	client := redistest.Client(server)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		rate := limits.Rate{
			PerSecond: rapid.OneOf(rapid.IntRange(1, 50), rapid.IntRange(1, 3_000_000)).Draw(rt, "rate"),
			Burst:     rapid.IntRange(1, 20).Draw(rt, "burst"),
		}
		key := "model" + strings.Repeat("x", run)
		name := "lectern:rate:{" + key + "}"
		m := &model{rate: rate}
		for range rapid.IntRange(1, 60).Draw(rt, "requests") {
			// Each request has its own limiter, so no lease is used twice.
			l := limits.NewLimiter(redisdb.Script(client, limits.TakeScript), limits.LimiterOptions{})
			before := client.Time(t.Context()).Val().UnixMicro()
			r := l.Allow(t.Context(), key, rate)
			after := client.Time(t.Context()).Val().UnixMicro()
			if r.Allowed {
				debt, at, ok := parse(client.Get(t.Context(), name).Val())
				if !ok { // the value expired because all tokens were earned back
					m.level, m.at = 0, after
					continue
				}
				if at < before || at > after {
					rt.Fatalf("decided at %d, asked between %d and %d", at, before, after)
				}
				if !m.allow(at) {
					rt.Fatalf("allowed where the model refuses: %+v", r)
				}
				if debt != m.level {
					rt.Fatalf("debt %d, the model's %d", debt, m.level)
				}
				continue
			}
			// The refusal was between before and after, and the model must refuse at before.
			if early := *m; early.allow(before) {
				rt.Fatalf("refused, but the model allows it: %+v", r)
			}
			if wait := time.Duration(m.level+1_000_000-int64(rate.Burst)*1_000_000) * time.Microsecond / time.Duration(rate.PerSecond); r.RetryAfter > wait+time.Microsecond {
				rt.Fatalf("RetryAfter is %v, at most %v in the model", r.RetryAfter, wait)
			}
		}
	})
}

func parse(value string) (debt, at int64, ok bool) {
	d, a, ok := strings.Cut(value, ":")
	if !ok {
		return 0, 0, false
	}
	for _, p := range []struct {
		text string
		into *int64
	}{{d, &debt}, {a, &at}} {
		for _, c := range p.text {
			*p.into = *p.into*10 + int64(c-'0')
		}
	}
	return debt, at, true
}

func TestRateOff(t *testing.T) {
	server := redistest.Start(t)
	client := &counted{Scripter: redistest.Client(server)}
	r := limits.NewLimiter(redisdb.Script(client, limits.TakeScript), limits.LimiterOptions{}).Allow(t.Context(), "key", limits.Rate{})
	if diff := cmp.Diff(limits.Result{Allowed: true}, r); diff != "" {
		t.Error(diff)
	}
	h := http.Header{}
	r.WriteHeader(h)
	if len(h) != 0 {
		t.Errorf("headers %v", h)
	}
	if client.trips.Load() != 0 {
		t.Error("Redis was asked")
	}
}

func TestOpenWithoutRedis(t *testing.T) {
	rate := limits.Rate{PerSecond: 1, Burst: 3}
	var l *limits.Limiter
	for range 10 {
		if diff := cmp.Diff(limits.Result{Rate: rate, Allowed: true, Remaining: 3}, l.Allow(t.Context(), "key", rate)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// TestOpenWhileRedisIsDown checks that the limiter allows all requests while Redis is down or hangs.
func TestOpenWhileRedisIsDown(t *testing.T) {
	for _, tt := range []struct {
		name       string
		down, back func(*redistest.Server)
	}{
		{"killed", (*redistest.Server).Kill, (*redistest.Server).Restart},
		{"hanging", (*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := redistest.Start(t)
			var log logtest.Buffer
			client, err := redisdb.Open(redisdb.Config{URL: redistest.Patient(server.URL, 2*time.Second)}, redisdb.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			l := limits.NewLimiter(redisdb.Script(redisdb.Commands(client), limits.TakeScript), limits.LimiterOptions{Log: slog.New(slog.NewTextHandler(&log, nil))})
			rate := limits.Rate{PerSecond: 1, Burst: 5}
			for range 5 {
				if r := l.Allow(t.Context(), "key", rate); !r.Allowed {
					t.Fatalf("%+v", r)
				}
			}
			tt.down(server)
			for range 500 {
				if r := l.Allow(t.Context(), "other", rate); !r.Allowed || r.Remaining != 5 || r.Rate != rate {
					t.Fatalf("while it is down: %+v", r)
				}
			}
			if n := strings.Count(log.String(), "rates cannot be kept"); n != 1 {
				t.Errorf("logged %d times:\n%s", n, log.String())
			}
			tt.back(server)
			eventually.True(t, "a rate is kept", func() bool {
				return !l.Allow(t.Context(), "third", limits.Rate{PerSecond: 1, Burst: 1}).Allowed
			})
			kept := func() int {
				l.Allow(t.Context(), "fourth", limits.Rate{PerSecond: 1_000_000, Burst: 1})
				return strings.Count(log.String(), "rates are kept again")
			}
			eventually.True(t, "the return is logged", func() bool { return kept() > 0 })
			if n := kept(); n != 1 {
				t.Errorf("the return was logged %d times:\n%s", n, log.String())
			}
		})
	}
}
