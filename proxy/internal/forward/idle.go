package forward

import (
	"sync"
	"time"
)

// phase is a phase of a request. In some phases, bytes of a body are due.
type phase uint8

const (
	connecting phase = iota // no byte is due; the transport limits the time
	sending                 // the request is being written
	waiting                 // for the answer's headers: no byte is due; the transport limits the time
	receiving               // the answer's body is being read; the rest of the request's may still be written
)

// idleTimer calls a function when a body is due and no byte of either body has moved for its limit.
type idleTimer struct {
	limit time.Duration

	mu    sync.Mutex
	timer *time.Timer // nil: there is no limit, or the request is over
	phase phase
}

// newIdleTimer returns a timer in the phase connecting. A limit of 0 is no limit.
func newIdleTimer(limit time.Duration, expired func()) *idleTimer {
	t := &idleTimer{limit: limit}
	if limit > 0 {
		t.timer = time.AfterFunc(limit, expired)
		t.timer.Stop()
	}
	return t
}

// enter begins a phase. The phase receiving is final: the end of the request may be written after the answer began.
func (t *idleTimer) enter(p phase) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer == nil || t.phase == receiving {
		return
	}
	t.phase = p
	if p == sending || p == receiving {
		t.timer.Reset(t.limit)
	} else {
		t.timer.Stop()
	}
}

// moved restarts the timer because bytes of a body moved.
func (t *idleTimer) moved() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil && (t.phase == sending || t.phase == receiving) {
		t.timer.Reset(t.limit)
	}
}

// stop ends the timer.
func (t *idleTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}
