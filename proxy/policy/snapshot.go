package policy

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Snapshot holds all endpoints and credentials at one moment. It is immutable. A [Store] replaces a Snapshot with a
// newer one.
type Snapshot struct {
	endpoints   []*Endpoint
	credentials []*Credential
	scopes      map[scopeKey]*Scope
	origins     originIndex
}

type scopeKey struct{ project, environment string }

// Scope holds the endpoints of one project in one environment. A nil Scope is a Scope without endpoints.
type Scope struct {
	Endpoints []*Endpoint // by name
}

// NewSnapshot returns a Snapshot of the endpoints and credentials. It returns an error if two endpoints have the same
// name, or if two different credentials of an endpoint have the same id. The argument credentials must include all
// credentials that the endpoints use.
func NewSnapshot(endpoints []*Endpoint, credentials []*Credential) (*Snapshot, error) {
	s := &Snapshot{endpoints: slices.Clone(endpoints), credentials: credentials, scopes: map[scopeKey]*Scope{}}
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
		e.secrets = &atomic.Pointer[Secrets]{}
		e.secrets.Store(newSecrets(e, nil, time.Time{}))
		key := scopeKey{e.Project, e.Environment}
		if s.scopes[key] == nil {
			s.scopes[key] = &Scope{}
		}
		s.scopes[key].Endpoints = append(s.scopes[key].Endpoints, e)
	}
	s.origins = newOriginIndex(s.endpoints)
	return s, nil
}

// Scope returns the endpoints of the project in the environment, or nil if there are none.
func (s *Snapshot) Scope(project, environment string) *Scope {
	return s.scopes[scopeKey{project, environment}]
}

// Endpoints returns all endpoints, sorted by name. The caller must not change the slice.
func (s *Snapshot) Endpoints() []*Endpoint { return s.endpoints }

// Credentials returns the number of credentials in the Snapshot.
func (s *Snapshot) Credentials() int { return len(s.credentials) }

// Allowing returns the endpoints of the project and environment that allow the origin. For the origin "", it returns no
// endpoint. With the project "", it returns the endpoints of all projects that allow the origin, and may return an
// endpoint more than once.
func (s *Snapshot) Allowing(origin, project, environment string) iter.Seq[*Endpoint] {
	if project == "" {
		return s.origins.endpoints(origin)
	}
	return func(yield func(*Endpoint) bool) {
		if scope := s.Scope(project, environment); scope != nil && origin != "" {
			for _, e := range scope.Endpoints {
				if e.allowsOrigin(origin) && !yield(e) {
					return
				}
			}
		}
	}
}

// AllowTarget reports whether at least one of the endpoints allows a target with this URL, scheme and port. The URL is
// the scheme://host[:port]/path as the proxy sends it.
func AllowTarget(endpoints iter.Seq[*Endpoint], url, scheme string, port uint16) bool {
	tried := map[string]bool{} // many endpoints share the same rules
	for e := range endpoints {
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

// Store holds the Snapshot that is in force. The zero Store holds an empty Snapshot, which allows nothing.
type Store struct {
	current atomic.Pointer[Snapshot]
	watch   atomic.Pointer[func(*Snapshot)]

	mu      sync.Mutex
	secrets map[string]*atomic.Pointer[Secrets] // of each endpoint, also of removed ones while former values remain
}

// Current returns the Snapshot in force. The result is never nil.
func (s *Store) Current() *Snapshot {
	if current := s.current.Load(); current != nil {
		return current
	}
	return &Snapshot{}
}

// Replace puts a Snapshot in force for new requests, and then calls the function of [Store.OnReplace]. Requests in
// flight keep the previous Snapshot, but their answers are searched for the new values, too. The caller must not use
// next before.
func (s *Store) Replace(next *Snapshot) {
	s.remember(next, time.Now())
	s.current.Store(next)
	if watch := s.watch.Load(); watch != nil {
		(*watch)(next)
	}
}

// remember adds the former values of each endpoint to the Secrets of the endpoint in next. An endpoint is the same if it
// has the same name.
func (s *Store) remember(next *Snapshot, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := s.secrets
	s.secrets = make(map[string]*atomic.Pointer[Secrets], len(next.endpoints))
	for _, e := range next.endpoints {
		if secrets := had[e.Name]; secrets != nil {
			secrets.Store(newSecrets(e, secrets.Load(), now))
			e.secrets = secrets
		}
		s.secrets[e.Name] = e.secrets
		delete(had, e.Name)
	}
	for name, secrets := range had {
		if left := newSecrets(&Endpoint{}, secrets.Load(), now); len(left.values) > 0 {
			secrets.Store(left)
			s.secrets[name] = secrets
		}
	}
}

// OnReplace registers f, which [Store.Replace] calls with each new Snapshot. A later call of OnReplace replaces f.
func (s *Store) OnReplace(f func(*Snapshot)) { s.watch.Store(&f) }
