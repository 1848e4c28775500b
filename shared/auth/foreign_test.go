package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
)

// foreignStore is a ForeignSource in memory.
type foreignStore struct {
	mu     sync.Mutex
	hashes []auth.Hash
	err    error
	since  time.Time // the argument of the last call
}

func (f *foreignStore) ForeignHashes(_ context.Context, since time.Time, add func(auth.Hash)) (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = since
	if f.err != nil {
		return time.Time{}, f.err
	}
	for _, h := range f.hashes {
		add(h)
	}
	return time.Now(), nil
}

// answer sets what the next calls return.
func (f *foreignStore) answer(err error, hashes ...auth.Hash) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hashes, f.err = hashes, err
}

// lastSince returns the argument of the last call.
func (f *foreignStore) lastSince() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.since
}

func TestForeignKeys(t *testing.T) {
	source := &foreignStore{err: errors.New("out of reach")}
	foreign := auth.NewForeignKeys(source, slog.New(slog.DiscardHandler))
	simulate(t, auth.VerifierOptions{Foreign: foreign}, func(t *testing.T, b *bench) {
		b.store.put(auth.Record{ID: "key_f", ProjectID: "p", Foreign: true}, "my own key")
		b.store.put(auth.Record{ID: "key_g", ProjectID: "p", Foreign: true}, "brought later")
		verify := func(key string) error {
			_, err := b.Verify(t.Context(), "p", key)
			return err
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); foreign.Run(ctx) }()
		defer func() { cancel(); <-done }()
		synctest.Wait()
		if err := verify("my own key"); code(err) != "unavailable" {
			t.Errorf("before anything is known: %v, want unavailable", err)
		}
		if err := b.verify(t); err != nil {
			t.Errorf("a key of our own form: %v", err)
		}

		source.answer(nil, auth.HashKey("my own key"))
		time.Sleep(time.Second)
		synctest.Wait()
		if err := verify("my own key"); err != nil || !source.lastSince().IsZero() {
			t.Errorf("%v, and keys since %v are read after a failure, want all", err, source.lastSince())
		}

		// Random keys do not reach the store.
		before := b.store.asked.Load()
		for i := range 20_000 {
			if err := verify("made up " + string(rune('a'+i%26)) + strings.Repeat("x", i%100)); !errors.Is(err, auth.ErrUnknown) {
				t.Fatal(err)
			}
		}
		if n := b.store.asked.Load() - before; n != 0 {
			t.Errorf("%d look-ups of made-up keys", n)
		}

		source.answer(nil, auth.HashKey("brought later"))
		time.Sleep(time.Second)
		synctest.Wait()
		if since := source.lastSince(); since.IsZero() || time.Since(since) < 20*time.Second {
			t.Errorf("keys since %v are read, want those since some 30 s ago", since)
		}
		for _, key := range []string{"brought later", "my own key"} {
			if err := verify(key); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
	})
}
