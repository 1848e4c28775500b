package forward

import (
	"sync"
	"time"
)

// phase is the part of a request's work that is under way. In the phases sending and receiving, bytes of a body must
// arrive or leave.
type phase uint8

const (
	connecting phase = iota // no byte is due; the transport limits the time
	sending                 // the request is being written
	waiting                 // for the answer's headers: no byte is due; the transport limits the time
	receiving               // the answer's body is being read; the rest of the request's may still be written
)

// idleTimer calls a function when a body is due and, within the time limit, no byte of either body was read or written.
type idleTimer struct {
	limit time.Duration

	mu    sync.Mutex
	timer *time.Timer // nil: there is no limit, or the request is over
	phase phase
}

// newIdleTimer returns a timer in the phase connecting, in which the timer does not run. The timer calls expired after
// limit. A limit of 0 is no limit.
func newIdleTimer(limit time.Duration, expired func()) *idleTimer {
	t := &idleTimer{limit: limit}
	if limit > 0 {
		t.timer = time.AfterFunc(limit, expired)
		t.timer.Stop()
	}
	return t
}

// enter begins phase p, and starts or stops the timer. The phase receiving is final: the end of the request may be
// written after the answer began.
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

// moved restarts the timer in the phases sending and receiving, because bytes of a body were read or written.
func (t *idleTimer) moved() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil && (t.phase == sending || t.phase == receiving) {
		t.timer.Reset(t.limit)
	}
}

// stop ends the timer for good. The caller of newIdleTimer calls stop at the end of the request.
func (t *idleTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}
