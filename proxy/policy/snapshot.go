package policy

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
)

// Snapshot is all endpoints and credentials at one moment. It does not change once it is made; [Store]
// replaces it by another.
type Snapshot struct {
	endpoints   []*Endpoint
	credentials []*Credential
	scopes      map[scopeKey]*Scope
	origins     originIndex

	holders atomic.Int64 // the store, and each request that uses it
}

type scopeKey struct{ project, environment string }

// Scope holds the endpoints of one project in one environment.
type Scope struct {
	Endpoints []*Endpoint // by name
}

// NewSnapshot makes a Snapshot. Names of endpoints are unique, and ids among the credentials of one endpoint. The
// credentials are all that the endpoints use; the Snapshot overwrites their values when it is no longer needed.
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

// AllowsPreflight reports whether any endpoint of any project allows the origin for that destination. (A
// preflight carries no project: the request itself is judged in full.)
func (s *Snapshot) AllowsPreflight(origin, url, scheme string, port uint16) bool {
	tried := map[string]bool{} // many endpoints have the same rules
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

// release ends one hold on the snapshot. The last one overwrites the values.
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

// hold keeps the values until release. It reports false when they are overwritten already.
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

// Acquire returns the Snapshot in force, and a function that releases it, which the caller calls once. The credentials
// keep their values until then.
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

// Replace puts a Snapshot in force. The values of the one before are overwritten when the last request that
// uses them is over.
func (s *Store) Replace(next *Snapshot) {
	previous := s.current.Swap(next)
	if previous != nil {
		previous.release()
	}
	if watch := s.watch.Load(); watch != nil {
		(*watch)(next)
	}
}

// OnReplace has f called with each Snapshot that is put in force from now on.
func (s *Store) OnReplace(f func(*Snapshot)) { s.watch.Store(&f) }
