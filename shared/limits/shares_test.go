package limits

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestPool checks the bounds of a holder and of all, and what a holder without anything may take.
func TestPool(t *testing.T) {
	p := NewPool("test", 10, 4)
	holder := func(name string) Holder { return Holder{name: name} }
	for i, tt := range []struct {
		holder string
		n      int64
		want   error
	}{
		{"a", 3, nil}, {"a", 2, ErrShare}, {"a", 1, nil}, {"a", 1, ErrShare},
		{"b", 5, nil}, // above its share, as it has nothing
		{"b", 1, ErrShare},
		{"", 1, nil}, {"", 1, ErrFull}, {"c", 1, ErrFull},
		{"a", -4, nil}, {"", 4, nil}, {"a", 1, ErrFull},
	} {
		var err error
		if tt.n < 0 {
			p.Give(holder(tt.holder), -tt.n)
		} else {
			err = p.Take(holder(tt.holder), tt.n)
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("step %d: %q takes %d: %v; want %v", i, tt.holder, tt.n, err, tt.want)
		}
	}
	if p.used != 10 || p.refused != 6 {
		t.Errorf("%d are taken, %d refused", p.used, p.refused)
	}
	if err := NewPool("test", 10, 4).Take(holder("large"), 100); err != nil {
		t.Errorf("what is larger than all can never be served: %v", err)
	}
	none := NewPool("test", 0, 1)
	for range 100 {
		if err := none.Take(holder("a"), 1); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNetworks checks what is one network, and that the networks of an IPv6 /48 have two shares together.
func TestNetworks(t *testing.T) {
	p := NewPool("test", 100, 2)
	for i, tt := range []struct {
		address string
		want    error
	}{
		{"2001:db8:1:1::1", nil}, {"2001:db8:1:1::2%eth0", nil}, {"2001:db8:1:1::3", ErrShare},
		{"2001:db8:1:2::1", nil}, {"2001:db8:1:3::1", nil}, {"2001:db8:1:4::1", ErrShare}, {"2001:db8:2:1::1", nil},
		{"10.0.0.1", nil}, {"::ffff:10.0.0.1", nil}, {"10.0.0.1", ErrShare}, {"::ffff:10.0.0.2", nil},
		{"no address", nil}, {"no address", nil}, {"no address", ErrShare},
	} {
		if err := p.Take(Network(tt.address), 1); !errors.Is(err, tt.want) {
			t.Errorf("step %d: %s: %v; want %v", i, tt.address, err, tt.want)
		}
	}
	p.Give(Network("2001:db8:1:3::1"), 1)
	if err := p.Move(Holder{}, Network("2001:db8:1:9::1"), 1); err != nil {
		t.Errorf("a place that was given back: %v", err)
	}
	if known, unknown := Client("::1", true), Client("::1", false); known != Network("::1") || unknown != (Holder{}) {
		t.Errorf("the clients are %v and %v", known, unknown)
	}
}

// TestMove checks that a place of a network becomes a project's, within its share.
func TestMove(t *testing.T) {
	p := NewPool("test", 16, 2)
	network := Network("2001:db8::1")
	if err := p.Take(network, 2); err != nil {
		t.Fatal(err)
	}
	if err := p.Take(Holder{}, 1); err != nil {
		t.Fatal(err)
	}
	for i, from := range []Holder{network, network, {}} {
		if err := p.Move(from, Project("a"), 1); (err != nil) != (i == 2) || err != nil && !errors.Is(err, ErrShare) {
			t.Errorf("move %d: %v", i, err)
		}
	}
	p.Give(Project("a"), 2)
	p.Give(Holder{}, 1)
	if p.used != 0 || len(p.by) != 0 {
		t.Errorf("%d are taken, by %v", p.used, p.by)
	}
}

type projectKey struct{}

func projectOf(ctx context.Context) string { return ctx.Value(projectKey{}).(string) }

// TestProjectsTakeTurns checks that a project with eight lists runs no more statements than a project with one.
func TestProjectsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := NewReads(ReadOptions{LargeReads: 1}, projectOf)
		var mu sync.Mutex
		var ran []string
		list := func(project string, statements int) {
			ctx := context.WithValue(t.Context(), projectKey{}, project)
			for range statements {
				release, err := reads.Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				ran = append(ran, project)
				mu.Unlock()
				time.Sleep(10 * time.Millisecond)
				release()
			}
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { list("b", 10) })
		}
		synctest.Wait()
		for _, project := range []string{"x", "y"} {
			all.Go(func() { list(project, 5) })
			synctest.Wait()
		}
		all.Wait()
		if n := strings.Count(strings.Join(ran[:16], ""), "b"); n > 6 {
			t.Errorf("the large one had %d of the first 16 statements: %v", n, ran[:16])
		}
		if len(reads.projects) != 0 || reads.waiting.Load() != 0 {
			t.Errorf("%d projects and %d waiting remain", len(reads.projects), reads.waiting.Load())
		}
	})
}

// TestGivingUpAtTheLastMoment checks that no turn is lost if the client disconnects at the moment of the acquisition.
func TestGivingUpAtTheLastMoment(t *testing.T) {
	reads := NewReads(ReadOptions{LargeReads: 1}, func(context.Context) string { return "a" })
	for range 2000 {
		release, err := reads.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var both sync.WaitGroup
		both.Go(func() {
			if release, err := reads.Acquire(ctx); err == nil {
				release()
			}
		})
		both.Go(cancel)
		release()
		both.Wait()
	}
	if len(reads.projects) != 0 || !reads.all.TryAcquire(1) {
		t.Error("a turn is lost")
	}
}
