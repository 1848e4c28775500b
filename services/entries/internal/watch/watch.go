// Package watch lets many requests wait until projects have new changes. While a request waits, the package reads the
// number of the project's newest change once a second, and soon after a [Watch.Hint]. When the number has grown, the
// package reads one page for all requests with the same question. A waiting request holds no database connection and no
// page.
package watch

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
)

const (
	// every is about the time between two reads of a project's newest number, if no [Watch.Hint] comes. every is also
	// the least time between two pages for the same requests if the first page has no change of the asked types.
	every = time.Second

	// gap is the least time between two reads of a project's newest number, even if [Watch.Hint] is called often.
	gap = 50 * time.Millisecond

	// lookTimeout bounds one read of a project's newest number, and one read of a page.
	lookTimeout = 10 * time.Second

	// mostShared is the size in bytes of the largest page that waiting requests share. Each request reads a larger page
	// itself. ANSWER_MEMORY does not count a shared page.
	mostShared = 64 << 10
)

// Store reads the changes of projects for a Watch.
type Store interface {
	// LastSeq returns the number of the project's newest change, or 0 if the project has no changes.
	LastSeq(ctx context.Context, projectID string) (last int64, err error)
	// Changes opens the page of changes for which ask asks. The Watch closes the page.
	Changes(ctx context.Context, ask change.Ask) (*change.Page, error)
}

// Answer has the changes for which a request has waited.
type Answer struct {
	// Body is the page in the format of the request. Body is nil if the page is too large to be shared, if the project
	// has lost the request's position, or after a panic. The request must then read the page itself.
	Body []byte
	// Last, Examined and More are copied from the [change.Page], and are zero if there was no page.
	Last, Examined int64
	More           bool
}

// Watch holds the waiting requests of each project, and reads new changes for them. A Watch is safe for concurrent
// use.
type Watch struct {
	store Store
	looks atomic.Int64

	mu       sync.Mutex
	projects map[string]*project
	waiters  int
}

// project is a project for which at least one request waits. The mutex of the Watch guards the groups.
type project struct {
	id     string
	groups map[change.Ask]*group
	hint   chan struct{} // has room for one hint
	stop   context.CancelFunc
}

// group holds the waiting requests with the same [change.Ask], which share one answer. The mutex of the Watch guards
// the group.
type group struct {
	ask     change.Ask
	waiters int
	after   int64     // up to this number, there are no changes of the asked types
	next    time.Time // the Watch reads no page for the group before this time
	done    chan struct{}
	answer  Answer // valid once done is closed
}

// New returns a Watch that reads changes from store. The Watch runs no goroutine while no request waits.
func New(store Store) *Watch { return &Watch{store: store, projects: map[string]*project{}} }

// Wait waits until the project has a change for which ask asks, and returns an [Answer]. Body is nil in an Answer whose
// page the caller must read itself. If ctx ends first, Wait returns the cause of ctx. While the store fails, Wait keeps
// waiting.
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

// Hint makes the Watch read the newest number of a project soon, because the project may have a new change. If no
// request waits for the project, Hint does nothing.
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

// Waiters returns how many requests wait now, for all projects together.
func (w *Watch) Waiters() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiters
}

// Looks returns how many times the Watch has read a project's newest number. Failed reads count too.
func (w *Watch) Looks() int64 { return w.looks.Load() }

// join adds a request to the group with the same ask, and creates the project and the group if necessary. The first
// request of a project starts the goroutine that runs [Watch.run].
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

// leave removes a request from its group. leave deletes the group after the last request. After the last group of a
// project, leave stops the goroutine of the project.
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

// run calls look for a project once a second and soon after a hint, until ctx ends. The first call is immediate,
// because a change may have come after the request read an empty page.
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

// look reads the number of the project's newest change, and then one page for each group that may have news. After a
// failure, the next call of look reads the same pages again. After a panic, look gives all groups an answer without a
// body. Each request then reads its page itself, so a panic ends only the request that causes it.
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

// behind returns the groups of a project that may have changes up to the number last, and may read a page now. A group
// that is after last is one of them, because the project has lost its position.
func (w *Watch) behind(p *project, last int64) (groups []*group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, g := range p.groups {
		if last != 0 && g.after != last && !now.Before(g.next) {
			groups = append(groups, g)
		}
	}
	return groups
}

// read reads a page for a group, and gives the page to all requests of the group. If the page has no change, or if
// reading fails, the group goes on waiting, unless the project has lost its position.
func (w *Watch) read(ctx context.Context, p *project, g *group) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var answer Answer
	page, err := w.store.Changes(ctx, g.ask)
	if err == nil {
		defer page.Close()
		answer = Answer{Last: page.Last, Examined: page.Examined, More: page.More}
		if body, whole := page.Whole(); whole && len(body) <= mostShared {
			answer.Body = bytes.Clone(body) // the page's buffer is used again
		}
	} else if apierr.From(err).Code() != apierr.HistoryLost {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if page != nil && page.Empty() {
		g.after, g.next = page.Examined, time.Now().Add(every)
		return
	}
	g.answer = answer
	close(g.done)
	if p.groups[g.ask] == g {
		delete(p.groups, g.ask) // a later request gets a group of its own
	}
}
