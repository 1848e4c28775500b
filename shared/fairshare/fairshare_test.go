package fairshare

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/pagelist"
)

func of(project string) context.Context {
	return httpapi.WithInfo(context.Background(), &httpapi.Info{ProjectID: project})
}

func enter(t *testing.T, s *Share, project string) pagelist.Turn {
	t.Helper()
	turn, err := s.Enter(of(project))
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// log says who had turns, and how many at once.
type log struct {
	users sync.WaitGroup

	mu      sync.Mutex
	turns   []string
	reading map[string]int
	most    map[string]int // by project; "" of all
}

func (l *log) begin(name, project string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reading == nil {
		l.reading, l.most = map[string]int{}, map[string]int{}
	}
	l.turns = append(l.turns, name)
	for _, of := range []string{project, ""} {
		l.reading[of]++
		l.most[of] = max(l.most[of], l.reading[of])
	}
}

func (l *log) end(project string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reading[project]--
	l.reading[""]--
}

// use has a list take n turns of that length.
func (l *log) use(t *testing.T, s *Share, project, name string, n int, each time.Duration, light bool) {
	turn, err := s.Enter(of(project))
	if err != nil {
		t.Error(err)
		return
	}
	defer turn.Leave()
	for range n {
		if _, err := turn.Take(context.Background()); err != nil {
			t.Error(err)
			return
		}
		l.begin(name, project)
		time.Sleep(each)
		l.end(project)
		turn.Give(light)
	}
}

func TestListsOfAProjectTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{ProjectReads: 1, Reads: 4})
		var l log
		for i := range 3 {
			l.users.Go(func() { l.use(t, s, "p", fmt.Sprint(i), 3, 10*time.Millisecond, false) })
			synctest.Wait()
		}
		l.users.Wait()
		if got, want := strings.Join(l.turns, ""), "012012012"; got != want {
			t.Errorf("turns %s, want %s", got, want)
		}
		if l.most["p"] != 1 {
			t.Errorf("%d at once", l.most["p"])
		}
		if len(s.projects)+len(s.order)+s.reading+s.waiting != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// A project of eight lists has no more turns than a project of one.
func TestProjectsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{ProjectReads: 1, Reads: 1})
		var l log
		for range 8 {
			l.users.Go(func() { l.use(t, s, "big", "b", 10, 10*time.Millisecond, false) })
		}
		synctest.Wait()
		begin := time.Now()
		for _, name := range []string{"x", "y"} {
			l.users.Go(func() {
				l.use(t, s, name, name, 5, 10*time.Millisecond, false)
				if took := time.Since(begin); took > 170*time.Millisecond {
					t.Errorf("%s took %v for five turns among three projects", name, took)
				}
			})
			synctest.Wait()
		}
		l.users.Wait()
		counts := map[string]int{}
		for _, name := range l.turns {
			counts[name]++
		}
		if diff := cmp.Diff(map[string]int{"b": 80, "x": 5, "y": 5}, counts); diff != "" {
			t.Error(diff)
		}
		if n := strings.Count(strings.Join(l.turns[:16], ""), "b"); n > 6 {
			t.Errorf("the big one had %d of the first 16 turns: %v", n, l.turns[:16])
		}
		if l.most[""] != 1 {
			t.Errorf("%d at once", l.most[""])
		}
	})
}

// Of all turns, a project has its part only: what is left is for those who come.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{ProjectReads: 2, Reads: 3})
		var l log
		for _, project := range []string{"a", "b", "c"} {
			for range 5 {
				l.users.Go(func() { l.use(t, s, project, project, 10, 10*time.Millisecond, false) })
			}
		}
		l.users.Wait()
		if l.most[""] != 3 || max(l.most["a"], l.most["b"], l.most["c"]) != 2 {
			t.Errorf("at once: %v", l.most)
		}
		if len(l.turns) != 150 {
			t.Errorf("%d turns", len(l.turns))
		}
	})
}

func TestTurnsGiveWay(t *testing.T) {
	for _, tt := range []struct {
		name   string
		others bool
		light  bool
		used   time.Duration
		want   time.Duration // from the first turn to the end of the tenth
	}{
		{"nobody else asks", false, false, 10 * time.Millisecond, 100 * time.Millisecond},
		{"others ask", true, false, 10 * time.Millisecond, 280 * time.Millisecond},
		{"others ask, and turns are light", true, true, 10 * time.Millisecond, 100 * time.Millisecond},
		{"others ask, and turns are slow", true, false, time.Second, 10*time.Second + 9*longestRest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{ProjectReads: 1, Reads: 2})
				stop := make(chan struct{})
				defer close(stop)
				if tt.others {
					go func() {
						for tick := time.NewTicker(time.Millisecond); ; {
							select {
							case <-tick.C:
								s.Begun()
							case <-stop:
								tick.Stop()
								return
							}
						}
					}()
				}
				var l log
				begin := time.Now()
				l.use(t, s, "p", "x", 10, tt.used, tt.light)
				if took := time.Since(begin); took != tt.want {
					t.Errorf("took %v, want %v", took, tt.want)
				}
			})
		})
	}
}

// Turns are short from when another request came until none has come for a while.
func TestTurnsAreShortWhileOthersCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{ProjectReads: 1, Reads: 1})
		turn := enter(t, s, "p")
		defer turn.Leave()
		take := func(want bool) {
			t.Helper()
			short, err := turn.Take(t.Context())
			if err != nil || short != want {
				t.Errorf("short %t (%v), want %t", short, err, want)
			}
			time.Sleep(time.Millisecond)
			turn.Give(false)
		}
		take(false)
		s.Begun()
		take(true)
		time.Sleep(lately / 2)
		take(true)
		time.Sleep(lately)
		take(false)
		s.Begun()
		take(true)
	})
}

func TestOneListTooMany(t *testing.T) {
	s := New(Options{ProjectLists: 2})
	first := enter(t, s, "p")
	enter(t, s, "p")
	_, err := s.Enter(of("p"))
	if e, ok := errors.AsType[*apierr.Error](err); !ok || e.Code() != apierr.RateLimited || e.RetryAfter() <= 0 {
		t.Fatalf("err = %v, want rate_limited with a time to come back", err)
	}
	enter(t, s, "q")
	first.Leave()
	enter(t, s, "p")
	if lists, waiting, refused := s.Counts(); lists != 3 || waiting != 0 || refused != 1 {
		t.Errorf("counts %d, %d, %d", lists, waiting, refused)
	}
	unbounded := New(Options{})
	for range 100 {
		enter(t, unbounded, "p")
	}
}

// A list too many waits for a while, in the order of arrival.
func TestWaitingToBeAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{ProjectLists: 1, Wait: time.Second})
		first := enter(t, s, "p")
		type outcome struct {
			who  int
			turn pagelist.Turn
			err  error
			at   time.Duration
		}
		outcomes := make(chan outcome, 10)
		begin := time.Now()
		gone, cancel := context.WithTimeout(of("p"), 300*time.Millisecond)
		defer cancel()
		for i := range queue + 1 {
			ctx := of("p")
			if i == 1 {
				ctx = gone
			}
			go func() {
				turn, err := s.Enter(ctx)
				outcomes <- outcome{i, turn, err, time.Since(begin)}
			}()
			synctest.Wait()
		}
		code := func(err error) apierr.Code {
			if e, ok := errors.AsType[*apierr.Error](err); ok {
				return e.Code()
			}
			return ""
		}
		if o := <-outcomes; o.who != queue || code(o.err) != apierr.RateLimited || o.at != 0 {
			t.Errorf("one more than may wait: %+v", o)
		}
		if o := <-outcomes; o.who != 1 || !errors.Is(o.err, context.DeadlineExceeded) || o.at != 300*time.Millisecond {
			t.Errorf("one that gave up: %+v", o)
		}
		time.Sleep(200 * time.Millisecond)
		first.Leave()
		second := <-outcomes
		if second.who != 0 || second.err != nil || second.at != 500*time.Millisecond {
			t.Errorf("the first to wait: %+v", second)
		}
		for range queue - 2 {
			if o := <-outcomes; code(o.err) != apierr.RateLimited || o.at != time.Second {
				t.Errorf("waited in vain: %+v", o)
			}
		}
		second.turn.Leave()
		if lists, _, refused := s.Counts(); lists != 0 || refused != queue-1 || len(s.projects) != 0 {
			t.Errorf("%d lists, %d refused, %d projects", lists, refused, len(s.projects))
		}
	})
}

// Who gives up while it waits takes nobody's turn with it.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{ProjectReads: 1, Reads: 1})
		busy := enter(t, s, "p")
		if _, err := busy.Take(context.Background()); err != nil {
			t.Fatal(err)
		}
		gone := enter(t, s, "p")
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := gone.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		gone.Leave()
		if lists, waiting, _ := s.Counts(); lists != 1 || waiting != 0 {
			t.Errorf("%d lists, %d wait", lists, waiting)
		}
		busy.Give(false)
		next := enter(t, s, "p")
		if _, err := next.Take(context.Background()); err != nil {
			t.Fatal(err)
		}
		next.Give(false)
		next.Leave()
		busy.Leave()
		if len(s.projects)+len(s.order)+s.reading+s.waiting != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// A turn that comes at the moment at which its list gives up is not lost.
func TestGivingUpAsTheTurnComes(t *testing.T) {
	s := New(Options{ProjectReads: 1, Reads: 1})
	for range 2000 {
		busy, gone := enter(t, s, "p"), enter(t, s, "p")
		if _, err := busy.Take(context.Background()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := gone.Take(ctx); err == nil {
				gone.Give(false)
			}
		})
		both.Go(cancel)
		busy.Give(false)
		both.Wait()
		busy.Leave()
		gone.Leave()
		if s.reading != 0 || s.waiting != 0 || len(s.projects) != 0 {
			t.Fatalf("left behind: %d reading, %d waiting, %d projects", s.reading, s.waiting, len(s.projects))
		}
	}
}

func TestValidate(t *testing.T) {
	err := Options{ProjectLists: -1, ProjectReads: most + 1, Reads: -2, Wait: -1}.Validate()
	for _, name := range []string{"PROJECT_MAX_EXPORTS", "PROJECT_MAX_READS", "MAX_EXPORT_READS", "PROJECT_EXPORT_WAIT"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	if err := (Options{}).Validate(); err != nil {
		t.Error(err)
	}
}

func BenchmarkBegun(b *testing.B) {
	s := New(Options{})
	for b.Loop() {
		s.Begun()
	}
}
