package watch

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lectern-dev/lectern/shared/postgres/lists"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
)

// feed is a project's changes, all of the type entry. It counts the reads of pages.
type feed struct {
	last  atomic.Int64
	reads atomic.Int64
}

func (f *feed) LastSeq(context.Context, string) (int64, error) { return f.last.Load(), nil }

func (f *feed) Changes(ctx context.Context, ask change.Ask) (*change.Page, error) {
	f.reads.Add(1)
	last := f.last.Load()
	var records int64
	if ask.Types&change.Entry != 0 {
		records = last - ask.After
	}
	list, err := lists.Open(ctx, numbers(records), lists.Page{End: lists.Position{Key: last}, Limit: ask.Limit, Format: ask.Format})
	return &change.Page{List: list, Last: last, Examined: last}, err
}

// numbers is a list of so many records.
type numbers int64

func (n numbers) Chunk(_ context.Context, sink *lists.Sink, _, _ lists.Position, _ int) error {
	for i := range int64(n) {
		if sink.Begin(i+1, nil) == lists.Stop {
			break
		}
		sink.SetBytes(append(sink.Bytes(), '1'))
		sink.End()
	}
	return nil
}

func (numbers) Settle(context.Context, lists.Position, lists.Position, int) (lists.Position, bool, bool, error) {
	return lists.Position{}, false, false, nil
}

// TestOneReadForAll checks that a change is read once for two thousand requests that ask the same.
func TestOneReadForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &feed{}
		w := New(store)
		ask := change.Ask{ProjectID: "p", Types: change.All, Limit: 100}
		var all sync.WaitGroup
		for range 2000 {
			all.Go(func() {
				answer, err := w.Wait(t.Context(), ask)
				if err != nil || string(answer.Body) != "[1]\n" || answer.Examined != 1 {
					t.Errorf("%q, %+v, %v", answer.Body, answer, err)
				}
			})
		}
		synctest.Wait()
		store.last.Store(1)
		w.Hint("p")
		all.Wait()
		if n := store.reads.Load(); n != 1 {
			t.Errorf("the change was read %d times", n)
		}
		if w.Waiters() != 0 || len(w.projects) != 0 {
			t.Errorf("%d waiters and %d projects remain", w.Waiters(), len(w.projects))
		}
	})
}

// TestOtherTypes checks that requests for other types cost one read a second, however many changes there are.
func TestOtherTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &feed{}
		w := New(store)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if _, err := w.Wait(ctx, change.Ask{ProjectID: "p", Types: change.Event, Limit: 100}); err == nil {
					t.Error("a request got changes of another type")
				}
			})
		}
		for range 95 {
			time.Sleep(100 * time.Millisecond)
			store.last.Add(1)
			w.Hint("p")
		}
		all.Wait()
		if n := store.reads.Load(); n > 11 {
			t.Errorf("%d reads in ten seconds", n)
		}
	})
}

// broken is a feed whose rows make its reader panic.
type broken struct{ feed }

func (*broken) Changes(context.Context, change.Ask) (*change.Page, error) {
	panic("a row that nobody expects")
}

// TestPanic checks that a panic while a page is read ends the waits, which then read for themselves, and not the process.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &broken{}
		store.last.Store(1)
		w := New(store)
		for _, types := range []change.Types{change.All, change.Entry} {
			if answer, err := w.Wait(t.Context(), change.Ask{ProjectID: "p", Types: types, Limit: 100}); err != nil || answer.Body != nil {
				t.Errorf("%+v, %v", answer, err)
			}
		}
		if w.Waiters() != 0 {
			t.Errorf("%d still wait", w.Waiters())
		}
	})
}
