package auth_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
)

// store is a Store in memory. A test can make it fail or wait.
type store struct {
	mu      sync.Mutex
	records map[string]auth.Record // by project and hash
	fault   error
	gate    chan struct{} // if set, look-ups wait after the read until it is closed

	asked   atomic.Int64
	waiting atomic.Int64
}

func newStore() *store { return &store{records: map[string]auth.Record{}} }

func (s *store) put(r auth.Record, key string) { s.putHash(r, auth.HashKey(key)) }

func (s *store) putHash(r auth.Record, h auth.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[r.ProjectID+"\x00"+h.String()] = r
}

func (s *store) set(fault error, gate chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.gate = fault, gate
}

func (s *store) Lookup(ctx context.Context, projectID string, h auth.Hash) (auth.Record, error) {
	s.asked.Add(1)
	s.mu.Lock()
	r, ok := s.records[projectID+"\x00"+h.String()]
	fault, gate := s.fault, s.gate
	s.mu.Unlock()
	if gate != nil {
		s.waiting.Add(1)
		defer s.waiting.Add(-1)
		select {
		case <-gate:
		case <-ctx.Done():
			return auth.Record{}, ctx.Err()
		}
	}
	if fault != nil {
		return auth.Record{}, fault
	}
	if !ok {
		return auth.Record{}, auth.ErrUnknown
	}
	return r, nil
}

func (s *store) Grants(ctx context.Context, projectID string, hashes []auth.Hash) (all []auth.Record, err error) {
	for _, h := range hashes {
		switch r, err := s.Lookup(ctx, projectID, h); {
		case err == nil:
			all = append(all, r)
		case !errors.Is(err, auth.ErrUnknown):
			return nil, err
		}
	}
	return all, nil
}

func (s *store) EachProject(context.Context, []auth.Hash, func(auth.Record) bool) error {
	return errors.New("no test asks for it")
}

// bench is a verifier over a store in memory, with one key of project "p".
type bench struct {
	*auth.Verifier
	store *store
	key   string
}

func setup(t testing.TB, o auth.VerifierOptions) *bench {
	t.Helper()
	b := &bench{store: newStore()}
	if o.MaxLookups == 0 {
		o.MaxLookups = 64
	}
	b.Verifier = auth.NewVerifier(b.store, o)
	t.Cleanup(b.Verifier.Close)
	key, _ := auth.Mint()
	b.key = key.Reveal()
	b.put(auth.Record{})
	return b
}

// simulate runs test with a verifier in a synctest bubble, whose clock is simulated.
func simulate(t *testing.T, o auth.VerifierOptions, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) { test(t, setup(t, o)) })
}

// put stores the record of the bench's key. Its id, project and scopes are set.
func (b *bench) put(r auth.Record) {
	r.ID, r.ProjectID, r.Scopes = "key_1", "p", auth.DefaultScopes
	b.store.put(r, b.key)
}

func (b *bench) verify(t testing.TB) error {
	t.Helper()
	p, err := b.Verify(t.Context(), "p", b.key)
	if err == nil && (p.KeyID != "key_1" || p.ProjectID != "p") {
		t.Fatalf("the key speaks for %+v", p)
	}
	return err
}

func code(err error) apierr.Code {
	if e, ok := errors.AsType[*apierr.Error](err); ok {
		return e.Code()
	}
	return ""
}

func flip(digit string) string {
	if digit == "0" {
		return "1"
	}
	return "0"
}
