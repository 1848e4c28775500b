package auth_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/auth"
)

func TestVerifyRefuses(t *testing.T) {
	b := setup(t, auth.VerifierOptions{})
	other, _ := auth.Mint()
	revoked, _ := auth.Mint()
	expired, _ := auth.Mint()
	now := time.Now()
	b.store.put(auth.Record{ID: "key_2", ProjectID: "q", Scopes: auth.DefaultScopes}, other.Reveal())
	b.store.put(auth.Record{ID: "key_3", ProjectID: "p", RevokedAt: now}, revoked.Reveal())
	b.store.put(auth.Record{ID: "key_4", ProjectID: "p", ExpiresAt: now.Add(-time.Second)}, expired.Reveal())
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
	simulate(t, auth.VerifierOptions{}, func(t *testing.T, b *bench) {
		b.put(auth.Record{ExpiresAt: time.Now().Add(100 * time.Millisecond)})
		for _, want := range []error{nil, nil, auth.ErrExpired} {
			if err := b.verify(t); !errors.Is(err, want) {
				t.Errorf("err = %v, want %v", err, want)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if n := b.store.asked.Load(); n != 1 {
			t.Errorf("%d look-ups, want 1", n)
		}
	})
}

// TestOneLookupForManyRequests checks that requests share a look-up, and that it continues when the request that began
// it is cancelled.
func TestOneLookupForManyRequests(t *testing.T) {
	simulate(t, auth.VerifierOptions{}, func(t *testing.T, b *bench) {
		gate := make(chan struct{})
		b.store.set(nil, gate)
		first, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := b.Verify(first, "p", b.key)
			gone <- err
		}()
		synctest.Wait()
		const n = 100
		errs := make(chan error, n)
		for range n {
			go func() { errs <- b.verify(t) }()
		}
		synctest.Wait()
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
	})
}

func TestUnknownIsRememberedForASecond(t *testing.T) {
	simulate(t, auth.VerifierOptions{}, func(t *testing.T, b *bench) {
		never, _ := auth.Mint()
		verify := func() error {
			_, err := b.Verify(t.Context(), "p", never.Reveal())
			return err
		}
		for range 100 {
			if err := verify(); !errors.Is(err, auth.ErrUnknown) {
				t.Fatal(err)
			}
			time.Sleep(auth.CopyLife / 101)
		}
		if n := b.store.asked.Load(); n != 1 {
			t.Errorf("%d look-ups of an unknown key, want 1", n)
		}
		b.store.put(auth.Record{ID: "key_2", ProjectID: "p"}, never.Reveal())
		time.Sleep(auth.CopyLife / 50)
		if err := verify(); err != nil {
			t.Errorf("a second after it was minted: %v", err)
		}
	})
}

// TestRevokedKeyIsRefusedWithinASecond checks requests that begin more than a second after a revocation. They are
// refused whenever the process last asked the store, and whether or not the key is used in between.
func TestRevokedKeyIsRefusedWithinASecond(t *testing.T) {
	const step = 50 * time.Millisecond
	for age := time.Duration(0); age < 2*time.Second; age += step {
		for _, inUse := range []bool{true, false} {
			simulate(t, auth.VerifierOptions{}, func(t *testing.T, b *bench) {
				for range 1 + age/step {
					if err := b.verify(t); err != nil {
						t.Fatal(err)
					}
					time.Sleep(step)
				}
				b.put(auth.Record{RevokedAt: time.Now()})
				for since := time.Duration(0); since < 2*time.Second; since += step {
					if late := since > time.Second; late || inUse {
						if err := b.verify(t); late && !errors.Is(err, auth.ErrRevoked) {
							t.Fatalf("in use for %v, %v after the revocation: %v", age, since, err)
						}
					}
					time.Sleep(step)
				}
			})
		}
	}
}

// TestLookupThatBeganTooEarly checks that a request does not take the answer of a look-up that read the store more than
// a second before the request began. The answer is not cached for later requests either.
func TestLookupThatBeganTooEarly(t *testing.T) {
	simulate(t, auth.VerifierOptions{}, func(t *testing.T, b *bench) {
		gate := make(chan struct{})
		b.store.set(nil, gate)
		early, late := make(chan error, 1), make(chan error, 1)
		go func() { early <- b.verify(t) }()
		synctest.Wait()
		b.put(auth.Record{RevokedAt: time.Now()}) // the look-up has read the valid key
		b.store.set(nil, nil)
		time.Sleep(auth.CopyLife + time.Millisecond)
		go func() { late <- b.verify(t) }()
		synctest.Wait()
		close(gate)
		if err := <-early; err != nil {
			t.Errorf("the request that began before the revocation: %v", err)
		}
		if err := <-late; !errors.Is(err, auth.ErrRevoked) {
			t.Errorf("the request that began more than a second after it: %v", err)
		}
	})
	simulate(t, auth.VerifierOptions{}, func(t *testing.T, b *bench) {
		gate := make(chan struct{})
		b.store.set(nil, gate)
		early := make(chan error, 1)
		go func() { early <- b.verify(t) }()
		time.Sleep(auth.CopyLife + time.Millisecond)
		b.put(auth.Record{RevokedAt: time.Now()})
		close(gate)
		if err := <-early; err != nil {
			t.Error(err)
		}
		if err := b.verify(t); !errors.Is(err, auth.ErrRevoked) {
			t.Errorf("a copy that was too old when it came: %v", err)
		}
	})
}

// TestSlowRenewalDelaysNobody checks that requests with a valid copy do not wait while it is renewed. The copy of a key
// in use is renewed before it is too old.
func TestSlowRenewalDelaysNobody(t *testing.T) {
	simulate(t, auth.VerifierOptions{}, func(t *testing.T, b *bench) {
		use := func(d time.Duration) {
			t.Helper()
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				start := time.Now()
				if err := b.verify(t); err != nil || time.Since(start) != 0 {
					t.Fatalf("%v after %v", err, time.Since(start))
				}
			}
		}
		use(10 * time.Second)
		if n := b.store.asked.Load(); n < 10 || n > 15 {
			t.Errorf("%d look-ups in 10 s", n)
		}
		gate := make(chan struct{})
		b.store.set(nil, gate)
		time.AfterFunc(900*time.Millisecond, func() { b.store.set(nil, nil); close(gate) })
		use(290 * time.Millisecond) // a copy is renewed at 0.7 s, so that it still has 0.3 s
		<-gate
		if err := b.verify(t); err != nil {
			t.Error(err)
		}
		b.store.set(errors.New("out of reach"), nil)
		use(290 * time.Millisecond)
		time.Sleep(auth.CopyLife)
		if err := b.verify(t); code(err) != apierr.Unavailable {
			t.Errorf("without a valid copy, while the store fails: %v", err)
		}
		b.store.set(nil, nil)
		use(time.Second)
	})
}

// TestLookupsInFlightAreBounded checks that at most MaxLookups look-ups are in flight. Other requests wait for a
// moment, and are then told to retry.
func TestLookupsInFlightAreBounded(t *testing.T) {
	simulate(t, auth.VerifierOptions{MaxLookups: 3}, func(t *testing.T, b *bench) {
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
	})
}

// TestLookupsEnd checks that a look-up in a store that hangs ends with an error after two seconds, or after a longer
// LookupLimit.
func TestLookupsEnd(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: 2 * time.Second, time.Second: 2 * time.Second, 10 * time.Second: 10 * time.Second} {
		simulate(t, auth.VerifierOptions{LookupLimit: limit}, func(t *testing.T, b *bench) {
			b.store.set(nil, make(chan struct{}))
			start := time.Now()
			if err := b.verify(t); code(err) != apierr.Unavailable || time.Since(start) != want {
				t.Errorf("with the limit %v: %v after %v, want unavailable after %v", limit, err, time.Since(start), want)
			}
		})
	}
}

func TestCloseEndsLookups(t *testing.T) {
	simulate(t, auth.VerifierOptions{}, func(t *testing.T, b *bench) {
		b.store.set(nil, make(chan struct{}))
		result := make(chan error, 1)
		go func() { result <- b.verify(t) }()
		synctest.Wait()
		b.Close()
		synctest.Wait()
		if err := <-result; code(err) != apierr.Unavailable || b.store.waiting.Load() != 0 {
			t.Errorf("err = %v, want unavailable; %d look-ups in flight", err, b.store.waiting.Load())
		}
		if err := b.verify(t); code(err) != apierr.Unavailable {
			t.Errorf("after Close: %v, want unavailable", err)
		}
	})
}
