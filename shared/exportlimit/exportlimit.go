// Package exportlimit bounds the load of large lists on the database. A project that exports much then leaves room
// for small requests and for other projects' exports.
//
// A list that continues after its first chunk is large. A project may read PROJECT_MAX_EXPORTS of them at once. One
// more waits for PROJECT_EXPORT_WAIT, and gets 429 if none has ended by then. Each statement of a large list holds
// two semaphores: one of its project and one of all projects. It first acquires its project's, so at most
// PROJECT_MAX_READS statements of one project wait for the shared one. A project with many lists uses no more of it
// than one with few.
//
// It bounds one process and shares nothing with others.
package exportlimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/pagelist"
)

// Options bound the large lists of one process.
type Options struct {
	// How many large lists (500 records or more, or more than 4 MiB) one project may read at once from one replica. One
	// more waits for PROJECT_EXPORT_WAIT, then gets 429. 0: any number.
	ProjectLists int `env:"PROJECT_MAX_EXPORTS" envDefault:"16"`

	// How long a list above PROJECT_MAX_EXPORTS waits. 0: not at all.
	Wait time.Duration `env:"PROJECT_EXPORT_WAIT" envDefault:"2s"`

	// How many of a project's large lists query the database at the same time; the others wait. 0 takes half of the
	// CPUs that the process may use, at least 1.
	ProjectReads int `env:"PROJECT_MAX_READS" envDefault:"0"`

	// How many large lists of all projects query the database at the same time. Keep it below
	// DATABASE_MAX_CONNS. 0 takes the CPUs that the process may use, or PROJECT_MAX_READS if that is more.
	Reads int `env:"MAX_EXPORT_READS" envDefault:"0"`
}

const (
	most       = 100_000         // of each number in Options
	retryAfter = 5 * time.Second // the end of a list cannot be predicted

	// queue is how many lists of a project may wait for each one that is read. A list that waits holds its first
	// chunk.
	queue = 4
)

// Validate reports every setting that is out of range.
func (o Options) Validate() error {
	var faults []error
	for _, n := range []struct {
		variable string
		value    int
	}{{"PROJECT_MAX_EXPORTS", o.ProjectLists}, {"PROJECT_MAX_READS", o.ProjectReads}, {"MAX_EXPORT_READS", o.Reads}} {
		if n.value < 0 || n.value > most {
			faults = append(faults, config.Invalid(n.variable, n.value, fmt.Sprintf("an integer from 0 to %d", most)))
		}
	}
	if o.Wait < 0 {
		faults = append(faults, config.Invalid("PROJECT_EXPORT_WAIT", o.Wait, "0s or more"))
	}
	return errors.Join(faults...)
}

// Limiter is the [pagelist.Limiter] of a process. It may be used from several goroutines.
type Limiter struct {
	o     Options
	reads *semaphore.Weighted // statements of all projects

	lists, waiting, refused atomic.Int64 // read now, waiting to run a statement, refused so far

	mu       sync.Mutex
	projects map[string]*project
}

var _ pagelist.Limiter = (*Limiter)(nil)

// project has the semaphores of one project while it has large lists.
type project struct {
	id       string
	requests int // large lists, admitted or not; under Limiter.mu
	lists    *semaphore.Weighted
	reads    *semaphore.Weighted
}

// New returns a Limiter.
func New(o Options) *Limiter {
	cpus := runtime.GOMAXPROCS(0)
	if o.ProjectReads <= 0 {
		o.ProjectReads = max(1, cpus/2)
	}
	if o.Reads <= 0 {
		o.Reads = max(cpus, o.ProjectReads)
	}
	return &Limiter{o: o, reads: semaphore.NewWeighted(int64(o.Reads)), projects: map[string]*project{}}
}

// Enter admits a list of the project in the request's Info. A list above PROJECT_MAX_EXPORTS waits for
// PROJECT_EXPORT_WAIT, and is then refused as [apierr.RateLimited].
func (l *Limiter) Enter(ctx context.Context) (pagelist.Semaphore, error) {
	p, full := l.join(httpapi.InfoFrom(ctx).ProjectID)
	if !p.lists.TryAcquire(1) {
		wait, cancel := context.WithTimeout(ctx, l.o.Wait)
		defer cancel()
		if full || p.lists.Acquire(wait, 1) != nil {
			l.part(p)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			l.refused.Add(1)
			return nil, apierr.New(apierr.RateLimited, fmt.Sprintf(
				"As many large lists of this project are being read as may be at once: %d. Try again when one of them has ended.",
				l.o.ProjectLists)).After(retryAfter)
		}
	}
	l.lists.Add(1)
	return &list{limiter: l, project: p}, nil
}

// join counts a request of a project, and reports whether too many of the project's requests wait already.
func (l *Limiter) join(id string) (_ *project, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.projects[id]
	if p == nil {
		lists := int64(l.o.ProjectLists)
		if lists == 0 {
			lists = math.MaxInt64
		}
		p = &project{id: id, lists: semaphore.NewWeighted(lists), reads: semaphore.NewWeighted(int64(l.o.ProjectReads))}
		l.projects[id] = p
	}
	p.requests++
	return p, l.o.ProjectLists > 0 && p.requests > (1+queue)*l.o.ProjectLists
}

// part ends a request of a project, and forgets a project without requests.
func (l *Limiter) part(p *project) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.requests--; p.requests == 0 {
		delete(l.projects, p.id)
	}
}

// list is an admitted list.
type list struct {
	limiter *Limiter
	project *project
}

// Acquire waits for the semaphore of the project, then for that of all.
func (s *list) Acquire(ctx context.Context) error {
	s.limiter.waiting.Add(1)
	defer s.limiter.waiting.Add(-1)
	if err := s.project.reads.Acquire(ctx, 1); err != nil {
		return err
	}
	if err := s.limiter.reads.Acquire(ctx, 1); err != nil {
		s.project.reads.Release(1)
		return err
	}
	return nil
}

// Release returns both semaphores.
func (s *list) Release() {
	s.limiter.reads.Release(1)
	s.project.reads.Release(1)
}

// Leave makes room for another list of the project.
func (s *list) Leave() {
	s.limiter.lists.Add(-1)
	s.project.lists.Release(1)
	s.limiter.part(s.project)
}
