package client

import (
	"sync"
	"sync/atomic"
	"time"
)

// memory remembers answers, at most size of them. When it is full, one that was not used since it was
// last looked at goes (the clock algorithm, which costs a reader one store).
type memory struct {
	size int

	mu        sync.RWMutex
	byProject map[string]*memo
	ring      []*memo
	hand      int
}

// memo is what is known of a project.
type memo struct {
	project string
	answer  atomic.Pointer[answer]
	used    atomic.Bool
	failed  atomic.Int64 // when it could last not be renewed, Unix nanoseconds
}

// answer is what the service said, and when it was asked.
type answer struct {
	region Region
	asked  time.Time
}

func (m *memory) get(project string) (*memo, bool) {
	m.mu.RLock()
	found, ok := m.byProject[project]
	m.mu.RUnlock()
	if ok && !found.used.Load() {
		found.used.Store(true)
	}
	return found, ok
}

func (m *memory) put(project string, a *answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.byProject[project]; ok {
		known.answer.Store(a)
		return
	}
	added := &memo{project: project}
	added.answer.Store(a)
	m.byProject[project] = added
	if len(m.ring) < m.size {
		m.ring = append(m.ring, added)
		return
	}
	for m.ring[m.hand].used.Swap(false) {
		m.hand = (m.hand + 1) % len(m.ring)
	}
	delete(m.byProject, m.ring[m.hand].project)
	m.ring[m.hand] = added
	m.hand = (m.hand + 1) % len(m.ring)
}
