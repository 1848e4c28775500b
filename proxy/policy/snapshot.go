package policy

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
)

// Snapshot holds all endpoints and credentials at one moment. It is immutable. A [Store] replaces it with a newer one.
type Snapshot struct {
	endpoints   []*Endpoint
	credentials []*Credential
	scopes      map[scopeKey]*Scope
	origins     originIndex

	holders atomic.Int64 // reference count: the store, and each request in flight
}

type scopeKey struct{ project, environment string }

// Scope holds the endpoints of one project in one environment.
type Scope struct {
	Endpoints []*Endpoint // by name
}

// NewSnapshot returns a Snapshot. It fails unless the names of endpoints are unique, and the ids of each endpoint's
// credentials. credentials must include all that the endpoints use. The Snapshot overwrites their values when the last
// holder releases it.
func NewSnapshot(endpoints []*Endpoint, credentials []*Credential) (*Snapshot, error) {
	s := &Snapshot{endpoints: slices.Clone(endpoints), credentials: credentials, scopes: map[scopeKey]*Scope{}}
	s.holders.Store(1)
	slices.SortFunc(s.endpoints, func(a, b *Endpoint) int { return cmp.Compare(a.Name, b.Name) })
	for i, e := range s.endpoints {
		if i > 0 && s.endpoints[i-1].Name == e.Name {
			return nil, fmt.Errorf("two endpoints are named %q", e.Name)
		}
		for _, c := range e.Credentials {
			if e.credential(c.ID) != c {
				return nil, fmt.Errorf("endpoint %q has two credentials with the id %s", e.Name, c.ID)
			}
		}
		key := scopeKey{e.Project, e.Environment}
		if s.scopes[key] == nil {
			s.scopes[key] = &Scope{}
		}
		s.scopes[key].Endpoints = append(s.scopes[key].Endpoints, e)
	}
	s.origins = newOriginIndex(s.endpoints)
	return s, nil
}

// Scope returns the endpoints of the project in the environment, nil when there are none.
func (s *Snapshot) Scope(project, environment string) *Scope {
	return s.scopes[scopeKey{project, environment}]
}

// Endpoints returns all endpoints, by name.
func (s *Snapshot) Endpoints() []*Endpoint { return s.endpoints }

// Credentials returns how many credentials there are.
func (s *Snapshot) Credentials() int { return len(s.credentials) }

// AllowsOrigin reports whether any endpoint of any project allows the origin.
func (s *Snapshot) AllowsOrigin(origin string) bool {
	for range s.origins.endpoints(origin) {
		return true
	}
	return false
}

// AllowsPreflight reports whether any endpoint of any project allows the origin for the destination. A preflight carries
// no project. The request that follows it is checked in full.
func (s *Snapshot) AllowsPreflight(origin, url, scheme string, port uint16) bool {
	tried := map[string]bool{} // many endpoints share the same rules
	for e := range s.origins.endpoints(origin) {
		if !e.allowsPort(scheme, port) {
			continue
		}
		for _, r := range e.Destinations {
			if tried[r.source] {
				continue
			}
			if r.allowsURL(url) {
				return true
			}
			tried[r.source] = true
		}
	}
	return false
}

// Discard overwrites the values of a Snapshot that was never put in force.
func (s *Snapshot) Discard() { s.release() }

// release drops one reference. The last release overwrites the values.
func (s *Snapshot) release() {
	if s.holders.Add(-1) == 0 {
		for _, e := range s.endpoints {
			e.zero()
		}
		for _, c := range s.credentials {
			c.Value.Zero()
		}
	}
}

// hold adds a reference, which keeps the values until release. It reports false if they are already overwritten.
func (s *Snapshot) hold() bool {
	for {
		n := s.holders.Load()
		if n == 0 {
			return false
		}
		if s.holders.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Store holds the Snapshot that is in force. The zero Store holds an empty one.
type Store struct {
	current atomic.Pointer[Snapshot]
	watch   atomic.Pointer[func(*Snapshot)]
}

// Acquire returns the Snapshot in force, and a function that releases it. The caller must call the function once. The
// credentials keep their values until then.
func (s *Store) Acquire() (snapshot *Snapshot, release func()) {
	for {
		current := s.current.Load()
		if current == nil {
			return &Snapshot{}, func() {}
		}
		if current.hold() {
			return current, current.release
		}
	}
}

// Replace puts a Snapshot in force. The last request that uses the previous one overwrites its values when it ends.
func (s *Store) Replace(next *Snapshot) {
	previous := s.current.Swap(next)
	if previous != nil {
		previous.release()
	}
	if watch := s.watch.Load(); watch != nil {
		(*watch)(next)
	}
}

// OnReplace registers f, which Replace calls with each new Snapshot. A later call replaces f.
func (s *Store) OnReplace(f func(*Snapshot)) { s.watch.Store(&f) }
