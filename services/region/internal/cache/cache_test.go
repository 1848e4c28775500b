package cache

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/lectern-dev/lectern/services/region/internal/zone"
)

const (
	berlin = "Europe/Berlin"
	tokyo  = "Asia/Tokyo"
)

// fakeSource is a source whose zone, error and delay a test sets.
type fakeSource struct {
	zone  atomic.Value
	err   atomic.Pointer[error]
	delay atomic.Int64 // nanoseconds
	asked atomic.Int64
}

func (s *fakeSource) set(t *testing.T, name string) {
	t.Helper()
	z, err := zone.NewTable().Find(name)
	if err != nil {
		t.Fatal(err)
	}
	s.zone.Store(z)
}

func (s *fakeSource) fail(err error) {
	if err == nil {
		s.err.Store(nil)
	} else {
		s.err.Store(&err)
	}
}

func (s *fakeSource) find(ctx context.Context, _ string) (zone.Zone, error) {
	s.asked.Add(1)
	found := s.zone.Load().(zone.Zone) // read before the delay, so a slow answer may be outdated
	if d := s.delay.Load(); d > 0 {
		select {
		case <-time.After(time.Duration(d)):
		case <-ctx.Done():
			return zone.Zone{}, ctx.Err()
		}
	}
	if err := s.err.Load(); err != nil {
		return zone.Zone{}, *err
	}
	return found, nil
}

var options = Options{TTL: 5 * time.Second}

// run runs test in a synctest bubble with fake time. The cache's source returns Berlin.
func run(t *testing.T, test func(t *testing.T, s *fakeSource, c *Cache)) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{}
		s.set(t, berlin)
		c := New(s.find, options)
		defer c.Close()
		test(t, s, c)
	})
}

func expect(t *testing.T, c *Cache, want string) {
	t.Helper()
	got, err := c.Get(t.Context(), "pr_1")
	if err != nil || got.Name() != want {
		t.Fatalf("Get = %q, %v; want %q", got.Name(), err, want)
	}
}

func TestChangeIsSeenWithinTTL(t *testing.T) {
	run(t, func(t *testing.T, s *fakeSource, c *Cache) {
		expect(t, c, berlin)
		s.set(t, tokyo)
		time.Sleep(options.TTL)
		expect(t, c, tokyo)
	})
}

// TestRenewedInBackground checks that a project with constant requests is renewed in the background, and that no
// request waits.
func TestRenewedInBackground(t *testing.T) {
	run(t, func(t *testing.T, s *fakeSource, c *Cache) {
		expect(t, c, berlin)
		s.delay.Store(int64(100 * time.Millisecond))
		start := time.Now()
		for range 100 {
			before := time.Now()
			if _, err := c.Get(t.Context(), "pr_1"); err != nil || time.Since(before) > 0 {
				t.Fatalf("after %v a request waited %v: %v", time.Since(start), time.Since(before), err)
			}
			time.Sleep(time.Second / 2)
		}
		if n := s.asked.Load(); n < 10 || n > 25 {
			t.Errorf("in 50 s the source was asked %d times", n)
		}
	})
}

// TestLookUpThatOutlivesTheCopy checks that a copy is not kept if it becomes too old while a look-up for its renewal hangs.
func TestLookUpThatOutlivesTheCopy(t *testing.T) {
	run(t, func(t *testing.T, s *fakeSource, c *Cache) {
		expect(t, c, berlin)
		time.Sleep(stale - loadTimeout/2)
		s.delay.Store(int64(time.Hour))
		expect(t, c, berlin)
		time.Sleep(loadTimeout)
		s.delay.Store(0)
		s.fail(errors.New("down"))
		if got, err := c.Get(t.Context(), "pr_1"); err == nil {
			t.Errorf("answered %q, whose copy is too old", got.Name())
		}
	})
}

func TestSourceDown(t *testing.T) {
	down := errors.New("down")
	run(t, func(t *testing.T, s *fakeSource, c *Cache) {
		expect(t, c, berlin)
		s.fail(down)
		for age := time.Duration(0); age < stale-2*time.Second; age += 100 * time.Millisecond {
			expect(t, c, berlin)
			time.Sleep(100 * time.Millisecond)
		}
		if n := s.asked.Load(); n > 700 {
			t.Errorf("a source that is down was asked %d times in 10 minutes", n)
		}
		if _, err := c.Get(t.Context(), "pr_cold"); !errors.Is(err, down) {
			t.Errorf("a project without a copy: %v", err)
		}
		time.Sleep(3 * time.Second)
		if got, err := c.Get(t.Context(), "pr_1"); !errors.Is(err, down) {
			t.Errorf("after the stale time: %q, %v", got.Name(), err)
		}
		s.fail(nil)
		s.set(t, tokyo)
		expect(t, c, tokyo)
	})
}

// TestSourceHangs checks that a hanging source delays a request for a cached project by renewTimeout. During the pause
// it delays no request.
func TestSourceHangs(t *testing.T) {
	run(t, func(t *testing.T, s *fakeSource, c *Cache) {
		expect(t, c, berlin)
		s.delay.Store(int64(time.Hour))
		time.Sleep(options.TTL)
		start := time.Now()
		expect(t, c, berlin)
		if d := time.Since(start); d != renewTimeout {
			t.Errorf("it took %v", d)
		}
		start = time.Now()
		if _, err := c.Get(t.Context(), "pr_cold"); err == nil || time.Since(start) > loadTimeout {
			t.Errorf("a project without a copy: %v after %v", err, time.Since(start))
		}
		start = time.Now()
		expect(t, c, berlin)
		if d := time.Since(start); d != 0 {
			t.Errorf("during the pause it took %v", d)
		}
	})
}

// TestRequestEndsBeforeItsLookUp checks that other requests still get the zone if the request that began the look-up
// ends.
func TestRequestEndsBeforeItsLookUp(t *testing.T) {
	run(t, func(t *testing.T, s *fakeSource, c *Cache) {
		s.delay.Store(int64(time.Second))
		var wg sync.WaitGroup
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if _, err := c.Get(ctx, "pr_1"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		synctest.Wait()
		for range 20 {
			wg.Go(func() { expect(t, c, berlin) })
		}
		wg.Wait()
		if n := s.asked.Load(); n > 2 {
			t.Errorf("the source was asked %d times", n)
		}
	})
}

func TestSizeIsBounded(t *testing.T) {
	s := &fakeSource{}
	s.set(t, berlin)
	c := New(s.find, options)
	defer c.Close()
	for i := range 2 * capacity {
		if _, err := c.Get(t.Context(), strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	copies := c.copies.(*otter.Cache[string, entry])
	copies.CleanUp()
	if n := copies.EstimatedSize(); n > capacity {
		t.Errorf("%d zones are held", n)
	}
}
