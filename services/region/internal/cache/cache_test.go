package cache

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// source is what a cache is over: a value that tests change, break and slow.
type source struct {
	value atomic.Value
	err   atomic.Pointer[error]
	slow  atomic.Int64 // nanoseconds
	asked atomic.Int64
}

func newSource(value string) *source {
	s := &source{}
	s.value.Store(value)
	return s
}

func (s *source) fail(err error) {
	if err == nil {
		s.err.Store(nil)
	} else {
		s.err.Store(&err)
	}
}

func (s *source) load(ctx context.Context, _ string) (string, error) {
	s.asked.Add(1)
	value := s.value.Load().(string) // read before the wait, as a slow answer is an old one
	if d := s.slow.Load(); d > 0 {
		select {
		case <-time.After(time.Duration(d)):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if err := s.err.Load(); err != nil {
		return "", *err
	}
	return value, nil
}

var options = Options{TTL: 5 * time.Second, Stale: time.Minute, Size: 1000}

// run gives a test a cache within a bubble of fake time.
func run(t *testing.T, test func(t *testing.T, s *source, c *Cache[string])) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource("one")
		c := New(s.load, options, slog.New(slog.DiscardHandler))
		defer c.Close()
		test(t, s, c)
	})
}

func expect(t *testing.T, c *Cache[string], want string) {
	t.Helper()
	got, err := c.Get(t.Context(), "key")
	if err != nil || got != want {
		t.Fatalf("Get = %q, %v; want %q", got, err, want)
	}
}

func TestWarmAsksNobody(t *testing.T) {
	run(t, func(t *testing.T, s *source, c *Cache[string]) {
		for range 100 {
			expect(t, c, "one")
		}
		if n := s.asked.Load(); n != 1 {
			t.Errorf("the source was asked %d times", n)
		}
	})
}

func TestChangeIsSeenAtOnce(t *testing.T) {
	run(t, func(t *testing.T, s *source, c *Cache[string]) {
		expect(t, c, "one")
		s.value.Store("two")
		c.Changed("another")
		expect(t, c, "one")
		c.Changed("key")
		expect(t, c, "two")
	})
}

func TestChangeNobodyToldOfIsSeenWithinTTL(t *testing.T) {
	run(t, func(t *testing.T, s *source, c *Cache[string]) {
		expect(t, c, "one")
		s.value.Store("two")
		time.Sleep(options.TTL)
		expect(t, c, "two")
	})
}

// A value that is asked for all the time is renewed behind the requests: none of them waits.
func TestRenewedBehindRequests(t *testing.T) {
	run(t, func(t *testing.T, s *source, c *Cache[string]) {
		expect(t, c, "one")
		s.slow.Store(int64(100 * time.Millisecond))
		start := time.Now()
		for i := range 100 {
			s.value.Store(strconv.Itoa(i))
			before := time.Now()
			if _, err := c.Get(t.Context(), "key"); err != nil || time.Since(before) > 0 {
				t.Fatalf("after %v a request waited %v: %v", time.Since(start), time.Since(before), err)
			}
			time.Sleep(time.Second / 2)
		}
		if n := s.asked.Load(); n < 10 || n > 25 {
			t.Errorf("in 50 s the source was asked %d times", n)
		}
	})
}

func TestOneFlight(t *testing.T) {
	run(t, func(t *testing.T, s *source, c *Cache[string]) {
		s.slow.Store(int64(time.Second))
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { expect(t, c, "one") })
		}
		wg.Wait()
		if n := s.asked.Load(); n != 1 {
			t.Errorf("50 requests asked the source %d times", n)
		}
	})
}

// A change during a look-up: who asked before may get the old value, who asks after does not, and the
// old value is not kept.
func TestChangeDuringLookUp(t *testing.T) {
	for name, tell := range map[string]func(*Cache[string]){
		"changed": func(c *Cache[string]) { c.Changed("key") },
		"doubt":   func(c *Cache[string]) { c.Doubt() },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, s *source, c *Cache[string]) {
				s.slow.Store(int64(time.Second))
				var wg sync.WaitGroup
				wg.Go(func() { expect(t, c, "one") })
				synctest.Wait() // the look-up has read "one"
				s.value.Store("two")
				tell(c)
				wg.Go(func() { expect(t, c, "two") })
				wg.Wait()
				s.slow.Store(0)
				expect(t, c, "two")
			})
		})
	}
}

func TestDoubtAsksAgain(t *testing.T) {
	run(t, func(t *testing.T, s *source, c *Cache[string]) {
		expect(t, c, "one")
		time.Sleep(time.Millisecond)
		s.value.Store("two")
		c.Doubt()
		expect(t, c, "two")
		asked := s.asked.Load()
		expect(t, c, "two")
		if s.asked.Load() != asked {
			t.Error("what was read after the doubt is in doubt still")
		}
	})
}

func TestFaultOfTheSource(t *testing.T) {
	down := errors.New("down")
	run(t, func(t *testing.T, s *source, c *Cache[string]) {
		expect(t, c, "one")
		s.fail(down)
		c.Doubt() // a listener that comes back for a moment
		for age := time.Duration(0); age < options.Stale-2*time.Second; age += 100 * time.Millisecond {
			expect(t, c, "one")
			time.Sleep(100 * time.Millisecond)
		}
		if n := s.asked.Load(); n > 70 {
			t.Errorf("a source that is down was asked %d times in a minute", n)
		}
		if _, err := c.Get(t.Context(), "cold"); !errors.Is(err, down) {
			t.Errorf("a cold key: %v", err)
		}
		time.Sleep(3 * time.Second)
		if got, err := c.Get(t.Context(), "key"); !errors.Is(err, down) {
			t.Errorf("past the stale time: %q, %v", got, err)
		}
		s.fail(nil)
		s.value.Store("two")
		expect(t, c, "two")
	})
}

// A copy that is known to be outdated is no answer, also when there is no other.
func TestFaultAfterChange(t *testing.T) {
	run(t, func(t *testing.T, s *source, c *Cache[string]) {
		expect(t, c, "one")
		s.fail(errors.New("down"))
		c.Changed("key")
		if got, err := c.Get(t.Context(), "key"); err == nil {
			t.Errorf("answered %q, which was changed", got)
		}
	})
}

// A source that hangs costs a request that has a copy little time, and later ones none.
func TestHangingSource(t *testing.T) {
	run(t, func(t *testing.T, s *source, c *Cache[string]) {
		expect(t, c, "one")
		s.slow.Store(int64(time.Hour))
		time.Sleep(options.TTL)
		start := time.Now()
		expect(t, c, "one")
		if d := time.Since(start); d != patience {
			t.Errorf("it took %v", d)
		}
		start = time.Now()
		if _, err := c.Get(t.Context(), "cold"); err == nil || time.Since(start) > loadLimit {
			t.Errorf("a cold key: %v after %v", err, time.Since(start))
		}
		start = time.Now()
		expect(t, c, "one")
		if d := time.Since(start); d != 0 {
			t.Errorf("while the source rests it took %v", d)
		}
	})
}

func TestRequestEndsBeforeItsLookUp(t *testing.T) {
	run(t, func(t *testing.T, s *source, c *Cache[string]) {
		s.slow.Store(int64(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := c.Get(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		expect(t, c, "one") // of the look-up that the first request began
		if n := s.asked.Load(); n != 1 {
			t.Errorf("the source was asked %d times", n)
		}
	})
}

func TestPanicOfTheSource(t *testing.T) {
	c := New(func(context.Context, string) (string, error) { panic("boom") }, options, slog.New(slog.DiscardHandler))
	defer c.Close()
	if _, err := c.Get(t.Context(), "key"); err == nil {
		t.Error("no error")
	}
}

func TestSizeIsBounded(t *testing.T) {
	o := options
	o.Size = 100
	c := New(func(_ context.Context, key string) (string, error) { return key, nil }, o, slog.New(slog.DiscardHandler))
	defer c.Close()
	for i := range 10_000 {
		if _, err := c.Get(t.Context(), strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	c.held.CleanUp()
	if n := c.held.EstimatedSize(); n > 100 {
		t.Errorf("%d values are held", n)
	}
}

func TestCloseEndsLookUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource("one")
		s.slow.Store(int64(time.Hour))
		c := New(s.load, options, slog.New(slog.DiscardHandler))
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { _, err = c.Get(t.Context(), "key") })
		synctest.Wait()
		c.Close()
		wg.Wait()
		if err == nil {
			t.Error("no error")
		}
		if _, err := c.Get(t.Context(), "key"); err == nil {
			t.Error("a closed cache looks up")
		}
	})
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   Options
		ok   bool
	}{
		{"usual", options, true},
		{"no stale answers", Options{TTL: time.Second, Size: 1}, true},
		{"no TTL", Options{Size: 1}, false},
		{"negative stale time", Options{TTL: time.Second, Stale: -1, Size: 1}, false},
		{"no size", Options{TTL: time.Second}, false},
	} {
		if err := tt.in.Validate(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	c := New(func(context.Context, string) (string, error) { return "one", nil }, options, slog.New(slog.DiscardHandler))
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Get(b.Context(), "key"); err != nil {
			b.Fatal(err)
		}
	}
}
