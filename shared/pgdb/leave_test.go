package pgdb

import (
	"context"
	"testing"
	"time"
)

// A caller whose rows are being read is waited for, however long it took until then; one whose context ends
// meanwhile counts once as gone.
func TestAwaitWhileRowsAreRead(t *testing.T) {
	p := &Pool{options: Options{AcquireTimeout: 10 * time.Millisecond}}
	over, cancel := context.WithCancelCause(t.Context())
	with := &party{ctx: over, cancel: cancel}
	with.stay.Store(2)
	ctx, end := context.WithCancel(t.Context())
	s := &brief{ctx: ctx, party: with, word: make(chan word, 1)}
	s.stage.Store(reading)
	told := make(chan word)
	go func() {
		what, err := p.await(s)
		if err != nil {
			t.Error(err)
		}
		told <- what
	}()
	<-p.patience().Done() // a later one than that of await, or the same
	time.Sleep(10 * time.Millisecond)
	if n := with.stay.Load(); n != 2 {
		t.Errorf("%d of 2 callers wait when patience is over", n)
	}
	end()
	for deadline := time.Now().Add(10 * time.Second); with.stay.Load() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of 2 callers wait when one has left", with.stay.Load())
		}
	}
	if over.Err() != nil {
		t.Error("what the other one waits for was ended")
	}
	s.word <- done
	if what := <-told; what != done {
		t.Errorf("told %v", what)
	}
}
