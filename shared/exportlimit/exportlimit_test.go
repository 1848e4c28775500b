package exportlimit

import (
	"context"
	"errors"
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

func enter(t *testing.T, s *Limiter, project string) pagelist.Semaphore {
	t.Helper()
	list, err := s.Enter(of(project))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// checkIdle checks that no semaphore is acquired and that the limiter has no projects.
func checkIdle(t *testing.T, s *Limiter) {
	t.Helper()
	if lists, waiting := s.lists.Load(), s.waiting.Load(); lists != 0 || waiting != 0 || len(s.projects) != 0 {
		t.Fatalf("remaining: %d lists, %d waiting, %d projects", lists, waiting, len(s.projects))
	}
	if !s.reads.TryAcquire(int64(s.o.Reads)) {
		t.Fatal("a semaphore is still acquired")
	}
	s.reads.Release(int64(s.o.Reads))
}

// log records the statements that ran, and how many ran concurrently.
type log struct {
	users sync.WaitGroup

	mu      sync.Mutex
	ran     []string
	reading map[string]int
	most    map[string]int // by project; "": all projects
}

func (l *log) begin(name, project string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reading == nil {
		l.reading, l.most = map[string]int{}, map[string]int{}
	}
	l.ran = append(l.ran, name)
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

// use runs n statements of a list.
func (l *log) use(t *testing.T, s *Limiter, project, name string, n int, each time.Duration) {
	list, err := s.Enter(of(project))
	if err != nil {
		t.Error(err)
		return
	}
	defer list.Leave()
	for range n {
		if err := list.Acquire(context.Background()); err != nil {
			t.Error(err)
			return
		}
		l.begin(name, project)
		time.Sleep(each)
		l.end(project)
		list.Release()
	}
}

// TestProjectsAlternate checks that a project with eight lists runs no more statements than a project with one.
func TestProjectsAlternate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{ProjectReads: 1, Reads: 1})
		var l log
		for range 8 {
			l.users.Go(func() { l.use(t, s, "big", "b", 10, 10*time.Millisecond) })
		}
		synctest.Wait()
		begin := time.Now()
		for _, name := range []string{"x", "y"} {
			l.users.Go(func() {
				l.use(t, s, name, name, 5, 10*time.Millisecond)
				if took := time.Since(begin); took > 170*time.Millisecond {
					t.Errorf("%s took %v for five statements among three projects", name, took)
				}
			})
			synctest.Wait()
		}
		l.users.Wait()
		counts := map[string]int{}
		for _, name := range l.ran {
			counts[name]++
		}
		if diff := cmp.Diff(map[string]int{"b": 80, "x": 5, "y": 5}, counts); diff != "" {
			t.Error(diff)
		}
		if n := strings.Count(strings.Join(l.ran[:16], ""), "b"); n > 6 {
			t.Errorf("the big one had %d of the first 16 statements: %v", n, l.ran[:16])
		}
		if l.most[""] != 1 {
			t.Errorf("%d at once", l.most[""])
		}
	})
}

// TestWaitingToBeAdmitted checks that a list over the limit waits for a while, and that lists are admitted in the order
// of arrival.
func TestWaitingToBeAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{ProjectLists: 1, Wait: time.Second})
		first := enter(t, s, "p")
		type outcome struct {
			who  int
			list pagelist.Semaphore
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
				list, err := s.Enter(ctx)
				outcomes <- outcome{i, list, err, time.Since(begin)}
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
			t.Errorf("the cancelled list: %+v", o)
		}
		time.Sleep(200 * time.Millisecond)
		first.Leave()
		second := <-outcomes
		if second.who != 0 || second.err != nil || second.at != 500*time.Millisecond {
			t.Errorf("the first to wait: %+v", second)
		}
		for range queue - 2 {
			if o := <-outcomes; code(o.err) != apierr.RateLimited || o.at != time.Second {
				t.Errorf("not admitted: %+v", o)
			}
		}
		second.list.Leave()
		if lists, refused := s.lists.Load(), s.refused.Load(); lists != 0 || refused != queue-1 || len(s.projects) != 0 {
			t.Errorf("%d lists, %d refused, %d projects", lists, refused, len(s.projects))
		}
	})
}

// TestGivingUpAtTheLastMoment checks that no semaphore is lost if the client disconnects at the moment of the
// acquisition.
func TestGivingUpAtTheLastMoment(t *testing.T) {
	s := New(Options{ProjectReads: 1, Reads: 1})
	for range 2000 {
		busy, gone := enter(t, s, "p"), enter(t, s, "p")
		if err := busy.Acquire(context.Background()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var both sync.WaitGroup
		both.Go(func() {
			if err := gone.Acquire(ctx); err == nil {
				gone.Release()
			}
		})
		both.Go(cancel)
		busy.Release()
		both.Wait()
		busy.Leave()
		gone.Leave()
		checkIdle(t, s)
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
