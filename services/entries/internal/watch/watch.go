// Package watch lets many requests wait until projects have new changes. All requests that wait for one project share
// the looks at its counter: one look a second, and one soon after a hint. A look is one read of the counter. A
// waiting request holds no database connection.
package watch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// every is the time between two looks without a hint.
	every = time.Second

	// gap is the least time between two looks.
	gap = 50 * time.Millisecond

	// lookTimeout bounds one look.
	lookTimeout = 10 * time.Second
)

// Look reads the newest number of a project.
type Look func(ctx context.Context, projectID string) (last int64, err error)

// Watch knows which projects requests wait for.
type Watch struct {
	look  Look
	looks atomic.Int64

	mu       sync.Mutex
	projects map[string]*project
	waiters  int
}

// project is a project that requests wait for. The mutex of the Watch guards it.
type project struct {
	id      string
	waiters int
	last    int64         // the newest number that a look found
	news    chan struct{} // closed when last grows
	hint    chan struct{} // has room for one hint
	stop    context.CancelFunc
}

// New returns a Watch.
func New(look Look) *Watch { return &Watch{look: look, projects: map[string]*project{}} }

// Wait returns nil when the project has a change after the number, or the cause of ctx if that ends first. While
// looks fail, Wait keeps waiting.
func (w *Watch) Wait(ctx context.Context, projectID string, after int64) error {
	p := w.join(projectID)
	defer w.leave(p)
	for {
		w.mu.Lock()
		last, news := p.last, p.news
		w.mu.Unlock()
		if last > after {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Hint reports that a project may have a new change.
func (w *Watch) Hint(projectID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.projects[projectID]; p != nil {
		select {
		case p.hint <- struct{}{}:
		default: // a look is due already
		}
	}
}

// Waiters returns how many requests wait.
func (w *Watch) Waiters() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiters
}

// Looks returns how many looks there were.
func (w *Watch) Looks() int64 { return w.looks.Load() }

// join counts a request that waits for a project. The first one starts the looks.
func (w *Watch) join(projectID string) *project {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.projects[projectID]
	if p == nil {
		ctx, stop := context.WithCancel(context.Background())
		p = &project{id: projectID, news: make(chan struct{}), hint: make(chan struct{}, 1), stop: stop}
		w.projects[projectID] = p
		go w.run(ctx, p)
	}
	p.waiters++
	w.waiters++
	return p
}

// leave stops the looks with the last request.
func (w *Watch) leave(p *project) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters--
	if p.waiters--; p.waiters == 0 {
		delete(w.projects, p.id)
		p.stop()
	}
}

// run looks at a project's counter until ctx ends. It looks at once: a change can be newer than what the request read
// before it began to wait.
func (w *Watch) run(ctx context.Context, p *project) {
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		w.lookAt(ctx, p)
		select {
		case <-time.After(gap):
		case <-ctx.Done():
			return
		}
		timer.Reset(every - gap)
		select {
		case <-p.hint:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// lookAt looks once. If a look fails, the next one repeats it.
func (w *Watch) lookAt(ctx context.Context, p *project) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	w.looks.Add(1)
	last, err := w.look(ctx, p.id)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if last > p.last {
		p.last = last
		close(p.news)
		p.news = make(chan struct{})
	}
}
