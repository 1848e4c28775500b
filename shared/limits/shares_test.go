package limits

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const full, share = "all of it is taken", "the holder has its share"

func why(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestPool checks the bounds of a holder and of all, and what a holder without anything may take.
func TestPool(t *testing.T) {
	p := NewPool("test", 10, 4)
	holders := map[string]Holder{"a": Project("a"), "b": Project("b"), "c": Project("c")} // "": the zero Holder
	for i, tt := range []struct {
		holder string
		n      int64
		want   string
	}{
		{"a", 3, ""}, {"a", 2, share}, {"a", 1, ""}, {"a", 1, share},
		{"b", 5, ""}, // above its share, as it has nothing
		{"b", 1, share},
		{"", 1, ""}, {"", 1, full}, {"c", 1, full},
		{"a", -4, ""}, {"", 4, ""}, {"a", 1, full},
	} {
		var err error
		if tt.n < 0 {
			p.Give(holders[tt.holder], -tt.n)
		} else {
			err = p.Take(holders[tt.holder], tt.n)
		}
		if why(err) != tt.want {
			t.Errorf("step %d: %q takes %d: %v; want %q", i, tt.holder, tt.n, err, tt.want)
		}
	}
	if p.shares.all != 10 || p.shares.refused != 6 {
		t.Errorf("%d are taken, %d refused", p.shares.all, p.shares.refused)
	}
	if err := NewPool("test", 10, 4).Take(Project("large"), 100); err != nil {
		t.Errorf("what is larger than all can never be served: %v", err)
	}
	none := NewPool("test", 0, 1)
	for range 100 {
		if err := none.Take(Project("a"), 1); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNetworks checks what is one network, and that the networks of an IPv6 /48 have two shares together.
func TestNetworks(t *testing.T) {
	p := NewPool("test", 100, 2)
	for i, tt := range []struct {
		address string
		want    string
	}{
		{"2001:db8:1:1::1", ""}, {"2001:db8:1:1::2%eth0", ""}, {"2001:db8:1:1::3", share},
		{"2001:db8:1:2::1", ""}, {"2001:db8:1:3::1", ""}, {"2001:db8:1:4::1", share}, {"2001:db8:2:1::1", ""},
		{"10.0.0.1", ""}, {"::ffff:10.0.0.1", ""}, {"10.0.0.1", share}, {"::ffff:10.0.0.2", ""},
		{"no address", ""}, {"no address", ""}, {"no address", share},
	} {
		if err := p.Take(Network(tt.address), 1); why(err) != tt.want {
			t.Errorf("step %d: %s: %v; want %q", i, tt.address, err, tt.want)
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
		if err := p.Move(from, Project("a"), 1); (err != nil) != (i == 2) || err != nil && why(err) != share {
			t.Errorf("move %d: %v", i, err)
		}
	}
	p.Give(Project("a"), 2)
	p.Give(Holder{}, 1)
	if p.shares.all != 0 || len(p.shares.taken) != 0 {
		t.Errorf("%v are taken", p.shares.taken)
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
		if len(reads.holders) != 0 || reads.waiting.Load() != 0 {
			t.Errorf("%d projects and %d waiting remain", len(reads.holders), reads.waiting.Load())
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
	if len(reads.holders) != 0 || !reads.all.TryAcquire(1) {
		t.Error("a turn is lost")
	}
}
