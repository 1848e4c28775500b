package auth_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
)

func TestVerifyRefuses(t *testing.T) {
	b := setup(t, auth.VerifierOptions{})
	other, _ := auth.Mint()
	revoked, _ := auth.Mint()
	expired, _ := auth.Mint()
	b.store.put(auth.Record{ID: "key_2", ProjectID: "q", Scopes: auth.DefaultScopes}, other.Reveal())
	b.store.put(auth.Record{ID: "key_3", ProjectID: "p", RevokedAt: epoch}, revoked.Reveal())
	b.store.put(auth.Record{ID: "key_4", ProjectID: "p", ExpiresAt: epoch.Add(-time.Second)}, expired.Reveal())
	never, _ := auth.Mint()
	for _, tt := range []struct {
		name    string
		project string
		key     string
		want    error
		lookups int64
	}{
		{"good", "p", b.key, nil, 1},
		{"another project's", "p", other.Reveal(), auth.ErrUnknown, 1},
		{"unknown", "p", never.Reveal(), auth.ErrUnknown, 1},
		{"revoked", "p", revoked.Reveal(), auth.ErrRevoked, 1},
		{"expired", "p", expired.Reveal(), auth.ErrExpired, 1},
		{"missing", "p", "", auth.ErrMissing, 0},
		{"malformed", "p", "rk_x", auth.ErrMalformed, 0},
		{"wrong checksum", "p", b.key[:3] + flip(b.key[3:4]) + b.key[4:], auth.ErrMalformed, 0},
		{"foreign form", "p", "my own key", auth.ErrMalformed, 0},
		{"no project", "", b.key, auth.ErrUnknown, 0},
		{"project that is no text", "\xff", b.key, auth.ErrUnknown, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := b.store.asked.Load()
			_, err := b.Verify(t.Context(), tt.project, tt.key)
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("err = %v, want %v", err, tt.want)
			}
			if n := b.store.asked.Load() - before; n != tt.lookups {
				t.Errorf("%d look-ups, want %d", n, tt.lookups)
			}
		})
	}
}

func TestExpiryIsCheckedWarm(t *testing.T) {
	b := setup(t, auth.VerifierOptions{})
	b.store.put(auth.Record{ID: "key_1", ProjectID: "p", ExpiresAt: epoch.Add(100 * time.Millisecond)}, b.key)
	if err := b.verify(t); err != nil {
		t.Fatal(err)
	}
	b.clock.advance(100*time.Millisecond - 1)
	if err := b.verify(t); err != nil {
		t.Fatalf("before its expiry: %v", err)
	}
	b.clock.advance(1)
	if err := b.verify(t); !errors.Is(err, auth.ErrExpired) {
		t.Fatalf("at its expiry: %v", err)
	}
	if n := b.store.asked.Load(); n != 1 {
		t.Errorf("%d look-ups, want 1", n)
	}
}

func TestOneLookupForManyRequests(t *testing.T) {
	b := setup(t, auth.VerifierOptions{})
	gate := make(chan struct{})
	b.store.set(nil, gate)

	// The request that began the look-up is cancelled. The others must still get their answer.
	first, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := b.Verify(first, "p", b.key)
		gone <- err
	}()
	eventually(t, "the look-up begins", func() bool { return b.store.waiting.Load() == 1 })
	errs := make(chan error)
	const n = 100
	for range n {
		go func() {
			_, err := b.Verify(t.Context(), "p", b.key)
			errs <- err
		}()
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled request: %v", err)
	}
	close(gate)
	for range n {
		if err := <-errs; err != nil {
			t.Errorf("a request that waited: %v", err)
		}
	}
	if asked := b.store.asked.Load(); asked != 1 {
		t.Errorf("%d look-ups, want 1", asked)
	}
}

func TestUnknownIsRememberedForASecond(t *testing.T) {
	b := setup(t, auth.VerifierOptions{})
	never, _ := auth.Mint()
	verify := func() error {
		_, err := b.Verify(t.Context(), "p", never.Reveal())
		return err
	}
	for range 100 {
		if err := verify(); !errors.Is(err, auth.ErrUnknown) {
			t.Fatal(err)
		}
	}
	if n := b.store.asked.Load(); n != 1 {
		t.Fatalf("%d look-ups of an unknown key, want 1", n)
	}
	b.store.put(auth.Record{ID: "key_2", ProjectID: "p"}, never.Reveal())
	b.clock.advance(time.Second)
	if err := verify(); err != nil {
		t.Fatalf("a second after it was minted: %v", err)
	}

	// A key is valid as soon as it is announced.
	other, h := auth.Mint()
	if _, err := b.Verify(t.Context(), "p", other.Reveal()); !errors.Is(err, auth.ErrUnknown) {
		t.Fatal(err)
	}
	b.store.put(auth.Record{ID: "key_3", ProjectID: "p"}, other.Reveal())
	b.Changed("p", h)
	if _, err := b.Verify(t.Context(), "p", other.Reveal()); err != nil {
		t.Fatalf("after the announcement: %v", err)
	}
}

func TestCopyServesUntilTTLWhileTheStoreFails(t *testing.T) {
	b := setup(t, auth.VerifierOptions{})
	if err := b.verify(t); err != nil {
		t.Fatal(err)
	}
	b.store.set(errors.New("out of reach"), nil)
	for at := time.Duration(0); at < ttl; at += 100 * time.Millisecond {
		if err := b.verify(t); err != nil {
			t.Fatalf("%v after it was read: %v", at, err)
		}
		b.clock.advance(100 * time.Millisecond)
	}
	for range 3 {
		if err := b.verify(t); code(err) != apierr.Unavailable {
			t.Fatalf("after the TTL: %v, want unavailable", err)
		}
	}
	b.store.set(nil, nil)
	if err := b.verify(t); err != nil {
		t.Fatalf("when the store is back: %v", err)
	}
}

func TestReadingCountsOverAllLayers(t *testing.T) {
	b := setup(t, auth.VerifierOptions{})
	// Another process read the store's answer four seconds ago.
	old := b.clock.now().Add(-4 * time.Second)
	b.store.now = func() time.Time { return old }
	if err := b.verify(t); err != nil {
		t.Fatal(err)
	}
	b.store.set(errors.New("out of reach"), nil)
	b.clock.advance(time.Second - 1)
	if err := b.verify(t); err != nil {
		t.Fatalf("just below the TTL: %v", err)
	}
	b.clock.advance(1)
	if err := b.verify(t); code(err) != apierr.Unavailable {
		t.Fatalf("at the TTL: %v, want unavailable", err)
	}
}

// TestRevocationIsSeenWithinASecondWithoutBroadcast checks that a process without a subscription uses its copies for
// less than a second.
func TestRevocationIsSeenWithinASecondWithoutBroadcast(t *testing.T) {
	b := setup(t, auth.VerifierOptions{Unsubscribed: func() bool { return true }})
	if err := b.verify(t); err != nil {
		t.Fatal(err)
	}
	b.store.put(auth.Record{ID: "key_1", ProjectID: "p", RevokedAt: b.clock.now()}, b.key)
	b.clock.advance(900 * time.Millisecond)
	if err := b.verify(t); !errors.Is(err, auth.ErrRevoked) {
		t.Fatalf("900 ms after: %v", err)
	}
}

func TestBroadcastIsSeenAtOnce(t *testing.T) {
	b := setup(t, auth.VerifierOptions{})
	if err := b.verify(t); err != nil {
		t.Fatal(err)
	}
	h := auth.HashKey(b.key)
	b.store.put(auth.Record{ID: "key_1", ProjectID: "p", RevokedAt: b.clock.now()}, b.key)
	_, other := auth.Mint()
	b.Changed("p", other)
	b.Changed("q", h)
	if err := b.verify(t); err != nil {
		t.Fatalf("after changes of other keys: %v", err)
	}
	b.Changed("p", h)
	if err := b.verify(t); !errors.Is(err, auth.ErrRevoked) {
		t.Fatalf("after the change: %v", err)
	}
}

// TestBroadcastWhileTheStoreFails checks that a copy is never used once it is known to be outdated, even if no store
// answers.
func TestBroadcastWhileTheStoreFails(t *testing.T) {
	b := setup(t, auth.VerifierOptions{})
	if err := b.verify(t); err != nil {
		t.Fatal(err)
	}
	b.store.set(errors.New("out of reach"), nil)
	b.Changed("p", auth.HashKey(b.key))
	if err := b.verify(t); code(err) != apierr.Unavailable {
		t.Fatalf("err = %v, want unavailable", err)
	}
}

func TestRevocationDuringTheFirstLoadDoesNotComeBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*bench)
	}{
		{"announced", func(b *bench) { b.Changed("p", auth.HashKey(b.key)) }},
		{"missed, and all is dropped", func(b *bench) { b.Drop() }},
	} {
		t.Run(tt.name, func(t *testing.T) { revokeDuringLoad(t, tt.change) })
	}
}

func revokeDuringLoad(t *testing.T, change func(*bench)) {
	b := setup(t, auth.VerifierOptions{})
	gate := make(chan struct{})
	b.store.set(nil, gate)
	result := make(chan error)
	go func() { result <- b.verify(t) }()
	eventually(t, "the look-up has read", func() bool { return b.store.waiting.Load() == 1 })

	// The store has read the valid key. Now the key is revoked.
	b.store.put(auth.Record{ID: "key_1", ProjectID: "p", RevokedAt: b.clock.now()}, b.key)
	b.store.set(nil, nil)
	change(b)
	close(gate)
	if err := <-result; !errors.Is(err, auth.ErrRevoked) {
		t.Errorf("the request that waited: %v, want revoked", err)
	}
	if err := b.verify(t); !errors.Is(err, auth.ErrRevoked) {
		t.Errorf("the next request: %v, want revoked", err)
	}
}

func TestDropAsksAgain(t *testing.T) {
	b := setup(t, auth.VerifierOptions{})
	if err := b.verify(t); err != nil {
		t.Fatal(err)
	}
	b.Drop()
	if err := b.verify(t); err != nil {
		t.Fatal(err)
	}
	if n := b.store.asked.Load(); n != 2 {
		t.Fatalf("%d look-ups after all copies were dropped, want 2", n)
	}
	b.store.set(errors.New("out of reach"), nil)
	b.Drop()
	if err := b.verify(t); code(err) != apierr.Unavailable {
		t.Errorf("dropped, while the store fails: %v, want unavailable", err)
	}
}

// TestLookupsInFlightAreBounded checks that at most MaxLookups look-ups are in flight. Other requests wait for a
// moment, and are then told to retry.
func TestLookupsInFlightAreBounded(t *testing.T) {
	b := setup(t, auth.VerifierOptions{MaxLookups: 3})
	if err := b.verify(t); err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{})
	b.store.set(nil, gate)
	const n = 20
	errs := make(chan error, n)
	for range n {
		never, _ := auth.Mint()
		go func() {
			_, err := b.Verify(t.Context(), "p", never.Reveal())
			errs <- err
		}()
	}
	for range n - 3 {
		if err := <-errs; code(err) != apierr.RateLimited {
			t.Errorf("err = %v, want rate limited", err)
		}
	}
	if got := b.store.waiting.Load(); got != 3 {
		t.Errorf("%d look-ups in flight, want 3", got)
	}
	if err := b.verify(t); err != nil {
		t.Errorf("a cached key: %v", err)
	}
	close(gate)
	for range 3 {
		if err := <-errs; !errors.Is(err, auth.ErrUnknown) {
			t.Errorf("err = %v, want unknown", err)
		}
	}
}

func TestCancelledRequestIsNoFault(t *testing.T) {
	b := setup(t, auth.VerifierOptions{})
	gate := make(chan struct{})
	defer close(gate)
	b.store.set(nil, gate)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Verify(ctx, "p", b.key); !errors.Is(err, context.Canceled) {
		t.Fatalf("err = %v, want canceled", err)
	}
}

func TestCloseEndsLoads(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	b := setup(t, auth.VerifierOptions{LoadLimit: time.Minute})
	b.store.set(nil, make(chan struct{}))
	result := make(chan error)
	go func() { result <- b.verify(t) }()
	eventually(t, "the look-up begins", func() bool { return b.store.waiting.Load() == 1 })
	b.Close()
	if err := <-result; code(err) != apierr.Unavailable {
		t.Errorf("err = %v, want unavailable", err)
	}
	if err := b.verify(t); code(err) != apierr.Unavailable {
		t.Errorf("after Close: %v, want unavailable", err)
	}
	goleak.VerifyNone(t, ignore)
}
