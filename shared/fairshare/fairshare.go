// Package fairshare has the large lists of all projects take turns at the database, so that a project that
// exports much keeps nobody waiting: neither another project's exports nor what is small.
//
// A list comes here when it goes on behind its first chunk; what is smaller never does. From then on it asks
// for its turn before each statement. Turns are few, for each project and for all together; projects take them
// one after the other whatever number of lists each has, and so do the lists of a project. While other requests
// come, turns are short; and when some came while one was used, the next begins only after a rest of twice that
// turn: then two thirds of the time are free of exports. Where nobody else asks for anything, turns are long and
// nothing rests.
//
// It bounds one process. Replicas share nothing of it, as their load is balanced from outside.
package fairshare

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/pagelist"
)

// Options say how much lists of many chunks may ask of the database at a time.
type Options struct {
	// How many lists of more than 500 records one project may read at once from one replica. One more waits for
	// PROJECT_EXPORT_WAIT until one of them ends, and is answered 429 when none does. 0: any number.
	ProjectLists int `env:"PROJECT_MAX_EXPORTS" envDefault:"16"`

	// How long a list waits that is one too many of its project. 0: not at all.
	Wait time.Duration `env:"PROJECT_EXPORT_WAIT" envDefault:"2s"`

	// How many of a project's large lists ask the database at the same time; the others wait for their
	// turn. 0 takes half of the CPUs that the process may use, at least 1.
	ProjectReads int `env:"PROJECT_MAX_READS" envDefault:"0"`

	// How many large lists of all projects together ask the database at the same time. Keep it below
	// DATABASE_MAX_CONNS. 0 takes the CPUs that the process may use.
	Reads int `env:"MAX_EXPORT_READS" envDefault:"0"`

	// Now is the clock. Default: time.Now.
	Now func() time.Time `env:"-"`
}

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

// most is the highest of each number.
const most = 100_000

const (
	// restFor is how long a rest is, in turns; longestRest bounds it, for a turn that was slow for other reasons.
	restFor     = 2
	longestRest = 250 * time.Millisecond

	// lately is how long turns stay short behind the last request of somebody else.
	lately = 100 * time.Millisecond

	// comeBack is what a list too many is told to wait. Nobody knows when one of the others ends.
	comeBack = 5 * time.Second

	// queue is how many lists of a project may wait to be admitted, for each that is: they hold their first
	// chunk.
	queue = 4
)

// Share keeps the turns of a process. It may be used from many goroutines.
type Share struct {
	o Options

	lists   atomic.Int64 // that have entered and not left
	begun   atomic.Int64 // requests that came meanwhile
	refused atomic.Int64

	mu       sync.Mutex
	projects map[string]*project
	order    []*project    // those with lists that wait, by when they came
	waiting  int           // lists
	reading  int           // turns that are used or rested after
	passed   time.Duration // the time that a project had had when it was last given a turn
	counted  int64         // of the requests that came, those of which is known when
	busy     time.Time     // when there were last more
}

var _ pagelist.Turns = (*Share)(nil)

// project is a project with large lists.
type project struct {
	id      string
	lists   int
	outside []chan struct{} // of the lists that wait to be admitted; closed when one is
	reading int
	waiting []*place

	// had is the time of the database that the project has had. Who comes back after a while begins where
	// the others stand: time that was not used is not saved up.
	had time.Duration
}

// place is a list's.
type place struct {
	share   *Share
	project *project
	ready   chan struct{} // closed when it is the list's turn
	since   time.Time     // when that was
	begun   int64         // of the share then
	short   bool          // whether the turn is to be a short one
}

// New makes a Share.
func New(o Options) *Share {
	cpus := runtime.GOMAXPROCS(0)
	if o.ProjectReads <= 0 {
		o.ProjectReads = max(1, cpus/2)
	}
	if o.Reads <= 0 {
		o.Reads = max(cpus, o.ProjectReads)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Share{o: o, projects: map[string]*project{}}
}

// Begun says that a request has come. It costs a look at one number while no large list is read.
func (s *Share) Begun() {
	if s.lists.Load() > 0 {
		s.begun.Add(1)
	}
}

// Counts gives how many large lists are being read, how many of them wait for their turn, and how many were
// refused so far.
func (s *Share) Counts() (lists, waiting, refused int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists.Load(), int64(s.waiting), s.refused.Load()
}

// Enter admits a list of the project that the request's Info names. One too many waits, and is an apierr of
// RateLimited when that is in vain.
func (s *Share) Enter(ctx context.Context) (pagelist.Turn, error) {
	id := httpapi.InfoFrom(ctx).ProjectID
	s.mu.Lock()
	p, ok := s.projects[id]
	if !ok {
		p = &project{id: id}
		s.projects[id] = p
	}
	switch {
	case s.o.ProjectLists == 0 || p.lists < s.o.ProjectLists:
		p.lists++
		s.lists.Add(1)
		s.mu.Unlock()
	case s.o.Wait == 0 || len(p.outside) >= queue*s.o.ProjectLists:
		s.mu.Unlock()
		return nil, s.tooMany()
	default:
		admitted := make(chan struct{})
		p.outside = append(p.outside, admitted)
		s.mu.Unlock()
		if err := s.wait(ctx, p, admitted); err != nil {
			return nil, err
		}
	}
	return &place{share: s, project: p}, nil
}

// wait returns when another list of the project has given its place to this one, or why none has.
func (s *Share) wait(ctx context.Context, p *project, admitted chan struct{}) error {
	timer := time.NewTimer(s.o.Wait)
	defer timer.Stop()
	var err error
	select {
	case <-admitted:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = s.tooMany()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(p.outside, admitted); i >= 0 {
		p.outside = slices.Delete(p.outside, i, i+1)
		return err
	}
	if ctx.Err() == nil {
		return nil // at the last moment
	}
	s.leave(p)
	return err
}

func (s *Share) tooMany() error {
	s.refused.Add(1)
	return apierr.New(apierr.RateLimited, fmt.Sprintf(
		"As many large lists of this project are being read as may be at once: %d. Try again when one of them has ended.",
		s.o.ProjectLists)).After(comeBack)
}

// Take waits for the list's turn. It is a short one for a while after another request came.
func (l *place) Take(ctx context.Context) (short bool, err error) {
	s, p := l.share, l.project
	ready := make(chan struct{})
	s.mu.Lock()
	l.ready = ready
	if len(p.waiting) == 0 {
		p.had = max(p.had, s.passed)
		s.order = append(s.order, p)
	}
	p.waiting = append(p.waiting, l)
	s.waiting++
	s.next()
	s.mu.Unlock()
	select {
	case <-ready:
		return l.short, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(p.waiting, l); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		s.waiting--
		if len(p.waiting) == 0 {
			s.order = slices.DeleteFunc(s.order, func(q *project) bool { return q == p })
		}
	} else { // its turn came at that moment
		s.release(p)
	}
	return false, ctx.Err()
}

// next gives turns to those who wait, as long as there are some. The caller holds the lock.
func (s *Share) next() {
	for s.reading < s.o.Reads {
		least := -1
		for i, p := range s.order {
			if p.reading < s.o.ProjectReads && (least < 0 || p.had < s.order[least].had) {
				least = i
			}
		}
		if least < 0 {
			return
		}
		p := s.order[least]
		s.passed = max(s.passed, p.had)
		l := p.waiting[0]
		p.waiting = slices.Delete(p.waiting, 0, 1)
		s.waiting--
		s.order = slices.Delete(s.order, least, least+1)
		if len(p.waiting) > 0 {
			s.order = append(s.order, p)
		}
		p.reading++
		s.reading++
		l.since, l.begun = s.o.Now(), s.begun.Load()
		l.short = s.crowded(l.since, l.begun)
		close(l.ready)
	}
}

// crowded tells whether other requests came lately. The caller holds the lock.
func (s *Share) crowded(now time.Time, begun int64) bool {
	if begun != s.counted {
		s.counted, s.busy = begun, now
	}
	return now.Sub(s.busy) < lately
}

// release ends a turn. The caller holds the lock.
func (s *Share) release(p *project) {
	p.reading--
	s.reading--
	s.forget(p)
	s.next()
}

// Give ends the list's turn, and when others came meanwhile keeps the next one waiting: not after a light one, of
// which a long page has a few before its first byte and one behind at most, when it is left.
func (l *place) Give(light bool) {
	s := l.share
	used := s.o.Now().Sub(l.since)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.project.had += used
	if light || s.begun.Load() == l.begun || used <= 0 {
		s.release(l.project)
		return
	}
	time.AfterFunc(min(restFor*used, longestRest), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.release(l.project)
	})
}

// Leave gives the list's place back.
func (l *place) Leave() {
	l.share.mu.Lock()
	defer l.share.mu.Unlock()
	l.share.leave(l.project)
}

// leave gives a place to who waits for it first. The caller holds the lock.
func (s *Share) leave(p *project) {
	if len(p.outside) > 0 {
		close(p.outside[0])
		p.outside = slices.Delete(p.outside, 0, 1)
		return
	}
	p.lists--
	s.lists.Add(-1)
	s.forget(p)
}

// forget drops a project that has no large list. The caller holds the lock.
func (s *Share) forget(p *project) {
	if p.lists == 0 && p.reading == 0 {
		delete(s.projects, p.id)
	}
}
