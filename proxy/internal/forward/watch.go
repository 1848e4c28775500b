package forward

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// watch ends a request that takes too long in one of its phases.
type watch struct {
	cancel context.CancelCauseFunc
	moved  atomic.Int64 // when the last byte of a body came, as nanoseconds after began
	began  time.Time

	mu      sync.Mutex
	timer   *time.Timer
	limit   time.Duration // of the phase; 0: none
	since   time.Duration // when it began, after began
	idle    bool          // the phase goes on for as long as bytes come
	reason  error
	stopped bool
}

func newWatch(cancel context.CancelCauseFunc) *watch {
	return &watch{cancel: cancel, began: time.Now()}
}

// enter begins a phase.
func (w *watch) enter(limit time.Duration, idle bool, reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	w.limit, w.idle, w.reason, w.since = limit, idle, reason, time.Since(w.began)
	switch {
	case limit == 0 && w.timer != nil:
		w.timer.Stop()
	case limit == 0:
	case w.timer == nil:
		w.timer = time.AfterFunc(limit, w.fire)
	default:
		w.timer.Reset(limit)
	}
}

// progress notes that a byte came. It is cheap: the timer is not touched.
func (w *watch) progress() { w.moved.Store(int64(time.Since(w.began))) }

// fire ends the request, unless the phase has changed or bytes came since the timer was set.
func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || w.limit == 0 {
		return
	}
	since := w.since
	if w.idle {
		since = max(since, time.Duration(w.moved.Load()))
	}
	if left := since + w.limit - time.Since(w.began); left > 0 {
		w.timer.Reset(left)
		return
	}
	w.cancel(w.reason)
}

// stop ends the watch.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
