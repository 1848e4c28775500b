package auth_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
)

// uses is a UseWriter that records the latest use.
type uses struct {
	mu   sync.Mutex
	last auth.Use
}

func (u *uses) WriteUses(_ context.Context, all []auth.Use) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = all[len(all)-1]
	return nil
}

func (u *uses) latest() auth.Use {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last
}

// TestLastUseIsExactToAMinute uses a key every second. The recorded last use is never older than a minute.
func TestLastUseIsExactToAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &uses{}
		last := auth.NewLastUse(kept, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			last.Run(ctx, 30*time.Second)
		}()
		defer func() { cancel(); <-ended }()
		s := newStore()
		v := auth.NewVerifier(s, auth.VerifierOptions{MaxLookups: 1, Uses: last})
		defer v.Close()
		key, _ := auth.Mint()
		s.put(auth.Record{ID: "key_1", ProjectID: "p"}, key.Reveal())
		for range 300 {
			if _, err := v.Verify(ctx, "p", key.Reveal()); err != nil {
				t.Fatal(err)
			}
			if used := kept.latest(); used.KeyID != "" && time.Since(used.At) > time.Minute {
				t.Fatalf("the last use that was written is %v old", time.Since(used.At))
			}
			time.Sleep(time.Second)
		}
		if kept.latest().KeyID == "" {
			t.Error("no use was written")
		}
	})
}
