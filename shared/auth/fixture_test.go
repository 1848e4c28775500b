package auth_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
)

// clock is a clock that a test advances.
type clock struct{ offset atomic.Int64 }

var epoch = time.Now()

func (c *clock) now() time.Time          { return epoch.Add(time.Duration(c.offset.Load())) }
func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

// store is a Store in memory. A test can make it fail or wait.
type store struct {
	now func() time.Time

	mu      sync.Mutex
	records map[string]auth.Record // by project and hash
	fault   error
	gate    chan struct{} // if set, look-ups wait after the read until it is closed

	asked   atomic.Int64
	waiting atomic.Int64
}

func newStore(now func() time.Time) *store {
	return &store{now: now, records: map[string]auth.Record{}}
}

func (s *store) put(r auth.Record, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[r.ProjectID+"\x00"+auth.HashKey(key).String()] = r
}

func (s *store) set(fault error, gate chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.gate = fault, gate
}

func (s *store) Lookup(ctx context.Context, projectID string, h auth.Hash) (auth.Record, error) {
	s.asked.Add(1)
	s.mu.Lock()
	readAt := s.now()
	r, ok := s.records[projectID+"\x00"+h.String()]
	fault, gate := s.fault, s.gate
	s.mu.Unlock()
	if gate != nil {
		s.waiting.Add(1)
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
	r.ReadAt = readAt
	return r, nil
}

// bench is a verifier over a store in memory, with one key of project "p".
type bench struct {
	*auth.Verifier
	store *store
	clock *clock
	key   string
}

const ttl = 5 * time.Second

func setup(t testing.TB, o auth.VerifierOptions) *bench {
	t.Helper()
	b := &bench{clock: &clock{}}
	b.store = newStore(b.clock.now)
	o.Now = b.clock.now
	if o.TTL == 0 {
		o.TTL = ttl
	}
	b.Verifier = auth.NewVerifier(b.store, o)
	t.Cleanup(b.Verifier.Close)
	key, _ := auth.Mint()
	b.key = key.Reveal()
	b.store.put(auth.Record{ID: "key_1", ProjectID: "p", Scopes: auth.DefaultScopes}, b.key)
	return b
}

func (b *bench) verify(t testing.TB) error {
	t.Helper()
	p, err := b.Verify(t.Context(), "p", b.key)
	if err == nil && (p.KeyID != "key_1" || p.ProjectID != "p") {
		t.Fatalf("the key speaks for %+v", p)
	}
	return err
}

// eventually waits until ok returns true, and fails the test after ten seconds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
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
