// Package watch lets many requests wait until projects have new changes. It looks at the counter of a project that
// requests wait for once a second, and soon after a hint. When the counter has grown, it reads one page for all requests
// that ask the same. A waiting request holds no database connection and no page.
package watch

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
)

const (
	// every is the time between two looks without a hint, and between two reads for requests whose types did not match.
	every = time.Second

	// gap is the least time between two looks.
	gap = 50 * time.Millisecond

	// lookTimeout bounds one look and one read.
	lookTimeout = 10 * time.Second

	// mostShared is the largest page that requests get from a Watch, in bytes. ANSWER_MEMORY does not count such a page.
	mostShared = 64 << 10
)

// Store has the changes that a Watch reads.
type Store interface {
	// LastSeq reads the newest number of a project.
	LastSeq(ctx context.Context, projectID string) (last int64, err error)
	// Changes opens a page of changes.
	Changes(ctx context.Context, ask change.Ask) (*change.Page, error)
}

// Answer has the changes that a request has waited for.
type Answer struct {
	// Body is the page. It is nil if the page is large, or if reading it panicked: the request must read it itself.
	Body []byte
	// Last, Examined and More are those of [change.Page].
	Last, Examined int64
	More           bool
}

// Watch knows what requests wait for.
type Watch struct {
	store Store
	looks atomic.Int64

	mu       sync.Mutex
	projects map[string]*project
	waiters  int
}

// project is a project that requests wait for. The mutex of the Watch guards it.
type project struct {
	id     string
	groups map[change.Ask]*group
	hint   chan struct{} // has room for one hint
	stop   context.CancelFunc
}

// group is the requests that ask the same. The mutex of the Watch guards it.
type group struct {
	ask     change.Ask
	waiters int
	after   int64     // the number up to which there are no changes of these types
	next    time.Time // no read before
	done    chan struct{}
	answer  Answer // valid once done is closed
}

// New returns a Watch.
func New(store Store) *Watch { return &Watch{store: store, projects: map[string]*project{}} }

// Wait returns the changes that ask is for as soon as there are any, or the cause of ctx if that ends first. While the
// store fails, Wait keeps waiting.
func (w *Watch) Wait(ctx context.Context, ask change.Ask) (Answer, error) {
	p, g := w.join(ask)
	defer w.leave(p, g)
	select {
	case <-g.done:
		return g.answer, nil
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
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

// join counts a request. The first one of a project starts the looks.
func (w *Watch) join(ask change.Ask) (*project, *group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.projects[ask.ProjectID]
	if p == nil {
		ctx, stop := context.WithCancel(context.Background())
		p = &project{id: ask.ProjectID, groups: map[change.Ask]*group{}, hint: make(chan struct{}, 1), stop: stop}
		w.projects[ask.ProjectID] = p
		go w.run(ctx, p)
	}
	g := p.groups[ask]
	if g == nil {
		g = &group{ask: ask, after: ask.After, done: make(chan struct{})}
		p.groups[ask] = g
	}
	g.waiters++
	w.waiters++
	return p, g
}

// leave drops a group with its last request, and stops the looks with the last group.
func (w *Watch) leave(p *project, g *group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters--
	if g.waiters--; g.waiters == 0 && p.groups[g.ask] == g {
		delete(p.groups, g.ask)
	}
	if len(p.groups) == 0 && w.projects[p.id] == p {
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
		w.look(ctx, p)
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

// look asks the database once for the newest change, and then reads one page for each group of requests that may have news.
// After a failure, the next look reads the same pages again. After a panic, each request reads its own page, so that each
// request answers for its own panic.
func (w *Watch) look(ctx context.Context, p *project) {
	defer func() {
		if recover() == nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, g := range p.groups {
			close(g.done)
		}
		clear(p.groups)
	}()
	within, cancel := context.WithTimeout(ctx, lookTimeout)
	last, err := w.store.LastSeq(within, p.id)
	cancel()
	w.looks.Add(1)
	if err != nil {
		return
	}
	for _, g := range w.behind(p, last) {
		w.read(ctx, p, g)
	}
}

// behind returns the groups that may have news up to a number.
func (w *Watch) behind(p *project, last int64) (groups []*group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, g := range p.groups {
		if g.after < last && !now.Before(g.next) {
			groups = append(groups, g)
		}
	}
	return groups
}

// read reads a page for a group. Without a change of its types, the group goes on waiting.
func (w *Watch) read(ctx context.Context, p *project, g *group) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	page, err := w.store.Changes(ctx, g.ask)
	if err != nil {
		return
	}
	defer page.Close()
	answer := Answer{Last: page.Last, Examined: page.Examined, More: page.More}
	if body, whole := page.Whole(); whole && len(body) <= mostShared {
		answer.Body = bytes.Clone(body) // the page's buffer is used again
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if page.Empty() {
		g.after, g.next = page.Examined, time.Now().Add(every)
		return
	}
	g.answer = answer
	close(g.done)
	if p.groups[g.ask] == g {
		delete(p.groups, g.ask) // a later request gets a group of its own
	}
}
