package auth_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
)

// foreignStore is a ForeignSource in memory.
type foreignStore struct {
	hashes []auth.Hash
	err    error
	calls  chan time.Time // the argument of each call
}

func (f *foreignStore) ForeignHashes(ctx context.Context, since time.Time, add func(auth.Hash)) (time.Time, error) {
	defer func() {
		select {
		case f.calls <- since:
		case <-ctx.Done():
		}
	}()
	if f.err != nil {
		return time.Time{}, f.err
	}
	for _, h := range f.hashes {
		add(h)
	}
	return time.Now(), nil
}

func TestForeignKeys(t *testing.T) {
	source := &foreignStore{hashes: []auth.Hash{auth.HashKey("my own key")}, err: errors.New("out of reach"), calls: make(chan time.Time)}
	var logs bytes.Buffer
	foreign := auth.NewForeignKeys(source, slog.New(slog.NewTextHandler(&logs, nil)), time.Now)
	b := setup(t, auth.VerifierOptions{Foreign: foreign})
	b.store.put(auth.Record{ID: "key_f", ProjectID: "p", Foreign: true}, "my own key")
	b.store.put(auth.Record{ID: "key_g", ProjectID: "p", Foreign: true}, "brought later")
	verify := func(key string) error {
		_, err := b.Verify(t.Context(), "p", key)
		return err
	}

	if err := verify("my own key"); code(err) != "unavailable" {
		t.Errorf("before anything is known: %v, want unavailable", err)
	}
	if err := b.verify(t); err != nil {
		t.Errorf("a key of our own form: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); foreign.Run(ctx) }()
	defer func() { cancel(); <-done }()
	<-source.calls
	if err := verify("my own key"); code(err) != "unavailable" {
		t.Errorf("after a failure: %v, want unavailable", err)
	}
	source.err = nil // Run waits for the refresh
	foreign.Refresh()
	if since := <-source.calls; !since.IsZero() {
		t.Errorf("after a failure, keys since %v are read, want all", since)
	}
	eventually(t, "the keys are known", func() bool { return verify("my own key") == nil })

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

	source.hashes = []auth.Hash{auth.HashKey("brought later")}
	foreign.Refresh()
	if since := <-source.calls; since.IsZero() || time.Since(since) < 20*time.Second {
		t.Errorf("keys since %v are read, want those since some 30 s ago", since)
	}
	eventually(t, "the new key is known", func() bool { return verify("brought later") == nil })
	if err := verify("my own key"); err != nil {
		t.Errorf("a key that was known before: %v", err)
	}
}
