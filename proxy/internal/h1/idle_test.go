package h1

import (
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// polite answers everything.
func polite(c net.Conn, _ request) bool { says(c, ok); return true }

// together sends n requests of which each has a connection of its own.
func together(t *testing.T, s *target, tr *Transport, n int) {
	t.Helper()
	var bodies []*http.Response
	for range n {
		res, err := tr.RoundTrip(s.ask(t.Context(), http.MethodGet, ""))
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, res) // not read: the connection is taken
	}
	for _, res := range bodies {
		if _, _, err := whole(res, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestIdleBounds(t *testing.T) {
	for _, tt := range []struct {
		name         string
		all, each, n int
		want         int
	}{
		{"few", 8, 4, 3, 3},
		{"more than by target", 8, 4, 6, 4},
		{"more than in all", 3, 4, 6, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTarget(t, false, polite)
			tr := s.transport(func(o *Options) { o.MaxIdle, o.MaxIdlePerHost = tt.all, tt.each })
			together(t, s, tr, tt.n)
			if kept := tr.idleNow(); len(kept) != tt.want {
				t.Errorf("%d connections are kept, want %d", len(kept), tt.want)
			}
			if len(tr.idle.of) != 1 {
				t.Errorf("%d places", len(tr.idle.of))
			}
		})
	}
}

// TestOldestGoes has connections to several targets, of which those used last stay.
func TestOldestGoes(t *testing.T) {
	var targets []*target
	for range 3 {
		targets = append(targets, newTarget(t, false, polite))
	}
	tr := targets[0].transport(func(o *Options) { o.MaxIdle = 2 })
	for _, s := range targets {
		if _, _, err := s.get(tr); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range targets[1:] {
		if _, _, err := s.get(tr); err != nil || s.accepted.Load() != 1 {
			t.Errorf("target %d: %v, %d connections", i+1, err, s.accepted.Load())
		}
	}
	if _, _, err := targets[0].get(tr); err != nil || targets[0].accepted.Load() != 2 {
		t.Errorf("the first: %v, %d connections", err, targets[0].accepted.Load())
	}
}

func TestIdleTimeout(t *testing.T) {
	ended := make(chan struct{}, 4)
	s := newTarget(t, true, func(c net.Conn, r request) bool {
		says(c, ok)
		_, _ = c.Read(make([]byte, 1))
		ended <- struct{}{}
		return false
	})
	tr := s.transport(func(o *Options) { o.IdleTimeout = 20 * time.Millisecond })
	together(t, s, tr, 2)
	<-ended
	<-ended
	until(t, "nothing is kept", func() bool { return len(tr.idleNow()) == 0 })
	tr.idle.mu.Lock()
	defer tr.idle.mu.Unlock()
	if tr.idle.sweep != nil {
		t.Error("nothing is kept, and yet looked through")
	}
}

// TestClosedByTarget has targets close what is kept; that is noticed without another request.
func TestClosedByTarget(t *testing.T) {
	s := newTarget(t, true, func(c net.Conn, r request) bool { says(c, ok); return false })
	tr := s.transport(func(o *Options) { o.IdleTimeout = 600 * time.Millisecond })
	if _, _, err := s.get(tr); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	until(t, "nothing is kept", func() bool { return len(tr.idleNow()) == 0 })
	if took := time.Since(began); took > 500*time.Millisecond {
		t.Logf("it was noticed after %s only: a busy machine", took)
	}
}

func TestClose(t *testing.T) {
	hold, entered := make(chan struct{}), make(chan struct{}, 1)
	s := newTarget(t, true, func(c net.Conn, r request) bool {
		if r.Header.Get("X-Hold") != "" {
			entered <- struct{}{}
			<-hold
		}
		says(c, ok)
		return true
	})
	tr := s.transport(nil)
	together(t, s, tr, 2)
	var running sync.WaitGroup
	running.Go(func() {
		if _, body, err := whole(tr.RoundTrip(s.ask(t.Context(), http.MethodGet, "", "X-Hold", "1"))); err != nil || body != "ok" {
			t.Errorf("what runs goes on: %q %v", body, err)
		}
	})
	<-entered
	tr.Close()
	if kept := tr.idleNow(); len(kept) > 0 {
		t.Errorf("%d connections are kept", len(kept))
	}
	close(hold)
	running.Wait()
	if _, _, err := s.get(tr); err != nil {
		t.Errorf("another one: %v", err)
	}
	if kept := tr.idleNow(); len(kept) > 0 {
		t.Errorf("%d connections are kept", len(kept))
	}
}

// TestManyAtOnce has many requests share few connections.
func TestManyAtOnce(t *testing.T) {
	s := newTarget(t, true, func(c net.Conn, r request) bool {
		says(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"+r.Header.Get("X-Number")+"\r\n", "0\r\n\r\n")
		return true
	})
	tr := s.transport(nil)
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for n := range 50 {
				want := string(rune('a'+i)) + "000" + string(rune('0'+n%10))
				if _, body, err := whole(tr.RoundTrip(s.ask(t.Context(), http.MethodGet, "", "X-Number", want))); err != nil || body != want {
					t.Errorf("%q %v, want %q", body, err, want)
				}
			}
		})
	}
	running.Wait()
}
