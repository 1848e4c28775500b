package pgcitus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/shared/pgdb"
)

// errHangs is the cause of a 503 for a project whose worker does not answer.
var errHangs = fmt.Errorf("%w: its worker does not answer", pgdb.ErrShard)

// errBusy is the cause of a 503 if too many statements for the project's worker are in flight.
var errBusy = fmt.Errorf("%w: its worker is busy", pgdb.ErrShard)

// worker is a group of Citus nodes that answers or fails as one: a worker with its replicas. It bounds how many
// connections of a pool its statements use, and admits none while it hangs.
type worker struct {
	group   int32
	log     *slog.Logger // records each change of state
	probing atomic.Bool

	mu         sync.Mutex
	node       string // address, for the log
	share      int    // statements in flight at most
	statements map[*statement]struct{}
	waiting    time.Time     // since when a statement has waited for the first answer; zero if none waits
	project    string        // one of the worker's projects, for probes
	freed      chan struct{} // closed when a statement ends or the state changes
	state      state
	since      time.Time // of the state
	needsProbe bool      // a statement could not reach the worker, and no probe has run since
	probed     time.Time // end of the last probe
	answered   time.Time // last answer of the worker, or of the coordinator about it
	succeeded  time.Time // last success of a statement
}

// state is the state of a worker.
type state string

const (
	serving state = "serving"

	// down: the coordinator cannot reach the worker, and says so at once. Statements are admitted, and fail.
	down state = "down"

	// hanging: the worker does not answer. No statement is admitted.
	hanging state = "hanging"
)

// downProbeInterval is the interval of probing a worker that is down. Statements of its projects also find out when
// it is back.
const downProbeInterval = time.Second

// statement is a statement or transaction in flight on a worker.
type statement struct {
	worker   *worker
	cancel   context.CancelFunc
	began    time.Time
	canceled bool // because the worker hangs; guarded by worker.mu
}

// outcome says what the end of a statement shows about its worker.
type outcome int

const (
	outcomeUnknown     outcome = iota // nothing: it was cancelled, or timed out
	outcomeAnswered                   // the worker, or the coordinator for it, answered
	outcomeSucceeded                  // the statement succeeded
	outcomeUnreachable                // the coordinator could not reach the worker
)

func newWorker(group int32, log *slog.Logger) *worker {
	return &worker{group: group, log: log, statements: map[*statement]struct{}{}, freed: make(chan struct{}), state: serving}
}

// configure sets how many statements may be in flight, and the worker's address.
func (w *worker) configure(share int, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.share, w.node = share, node
}

// enter admits a statement, after a wait of at most timeout. It does not wait for a worker that has not answered for
// that long. The returned context ends with the statement.
func (w *worker) enter(ctx context.Context, project string, timeout time.Duration) (context.Context, *statement, error) {
	var timer *time.Timer
	for {
		w.mu.Lock()
		now := time.Now()
		if w.state == hanging {
			w.mu.Unlock()
			return nil, nil, errHangs
		}
		if len(w.statements) < w.share {
			if len(w.statements) == 0 { // cancelled earlier statements are no sign of silence
				w.waiting = now
			}
			s := &statement{worker: w, began: now}
			ctx, s.cancel = context.WithCancel(ctx)
			w.statements[s] = struct{}{}
			w.project = project
			w.mu.Unlock()
			return ctx, s, nil
		}
		silent, freed := w.silence(now), w.freed
		w.mu.Unlock()
		if silent > timeout {
			return nil, nil, errBusy
		}
		if timer == nil {
			timer = time.NewTimer(timeout)
			defer timer.Stop()
		}
		select {
		case <-freed:
		case <-timer.C:
			return nil, nil, errBusy
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// silence returns how long statements have waited without any answer. The caller holds w.mu.
func (w *worker) silence(now time.Time) time.Duration {
	if w.waiting.IsZero() {
		return 0
	}
	return now.Sub(w.waiting)
}

// restart starts the measurement of silence again. The caller holds w.mu.
func (w *worker) restart(now time.Time) {
	w.waiting = time.Time{}
	if len(w.statements) > 0 {
		w.waiting = now
	}
}

// meaning returns errHangs with the error of a statement if the gate cancelled it, or else the error.
func (s *statement) meaning(err error) error {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	if err != nil && s.canceled {
		return errors.Join(errHangs, err)
	}
	return err
}

// leave ends a statement.
func (s *statement) leave(o outcome) {
	s.cancel()
	w := s.worker
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.statements, s)
	now := time.Now()
	if o != outcomeUnknown {
		w.answered = now
		w.restart(now)
	}
	switch o {
	case outcomeSucceeded:
		w.succeeded = now
		// A statement that began before the worker went down does not show that it is back.
		if w.state == down && s.began.After(w.since) {
			w.change(serving, now, nil)
		}
	case outcomeUnreachable:
		w.needsProbe = w.needsProbe || w.state == serving
	}
	w.wake()
}

// wake makes waiting callers of enter check again. The caller holds w.mu.
func (w *worker) wake() {
	close(w.freed)
	w.freed = make(chan struct{})
}

// suspect reports whether the worker should be probed. It should if it has been silent for that long, if a statement
// could not reach it, or if it is known not to serve. suspect also returns one of the worker's projects.
func (w *worker) suspect(silence time.Duration) (project string, suspect bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	suspect = w.needsProbe || w.state == hanging || w.silence(now) >= silence ||
		w.state == down && now.Sub(w.probed) >= downProbeInterval
	return w.project, suspect
}

// set sets the state that a probe found, which began at that time, and why. It ignores the result if a later answer
// contradicts it. If the worker hangs, its statements are cancelled.
func (w *worker) set(to state, began time.Time, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.needsProbe, w.probed = false, now
	if to == hanging && w.answered.After(began) || to == down && w.succeeded.After(began) {
		return
	}
	w.change(to, now, why)
	if to == hanging {
		for s := range w.statements {
			s.canceled = true
			s.cancel()
		}
	} else {
		w.restart(now)
	}
	w.wake()
}

// change changes the state, and logs it if it is new. The caller holds w.mu, which keeps the few log lines in order.
func (w *worker) change(to state, now time.Time, why error) {
	if w.state == to {
		return
	}
	lasted := now.Sub(w.since)
	w.state, w.since = to, now
	log := w.log.With(slog.Int64("group", int64(w.group)), slog.String("node", w.node))
	ctx := context.Background()
	switch to {
	case serving:
		log.InfoContext(ctx, "a Citus worker serves again", slog.Duration("after", lasted.Round(time.Millisecond)))
	case down:
		log.WarnContext(ctx, "a Citus worker is out of reach; its projects are answered 503", slog.Any("error", why))
	case hanging:
		log.WarnContext(ctx, "a Citus worker does not answer; requests for its projects are refused with 503", slog.Any("error", why))
	}
}

// current returns the state of the worker.
func (w *worker) current() state {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}
