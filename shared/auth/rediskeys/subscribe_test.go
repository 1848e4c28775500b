package rediskeys_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/rediskeys"
	"github.com/lectern-dev/lectern/shared/redisdb"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// recorder is a Listener that records the changes and subscriptions it receives.
type recorder struct {
	mu         sync.Mutex
	changes    []string
	subscribed []bool
}

func (r *recorder) Changed(projectID string, h auth.Hash) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, projectID+" "+h.String())
}

func (r *recorder) Subscribed(is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribed = append(r.subscribed, is)
}

func (r *recorder) heard() (changes []string, subscribed []bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes), slices.Clone(r.subscribed)
}

func TestListen(t *testing.T) {
	for _, tt := range []struct {
		name       string
		down, back func(*redistest.Server)
	}{
		{"killed", (*redistest.Server).Kill, (*redistest.Server).Restart},
		{"hanging", (*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			client, err := redisdb.Open(redisdb.Config{URL: b.server.URL}, redisdb.Options{Rest: 20 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			var (
				e    recorder
				logs logtest.Buffer
				wg   sync.WaitGroup
			)
			ctx, cancel := context.WithCancel(t.Context())
			wg.Go(func() { rediskeys.Listen(ctx, client, &e, slog.New(slog.NewTextHandler(&logs, nil))) })
			defer wg.Wait()
			defer cancel()

			subscribed := func(want ...bool) func() bool {
				return func() bool { _, got := e.heard(); return slices.Equal(got, want) }
			}
			eventually(t, "subscribed", subscribed(true))
			b.redis.Publish(ctx, "lectern:apikey:changed", "no key")
			b.redis.Publish(ctx, "lectern:apikey:changed", strings.Repeat("x", 65))
			if err := b.Changed(ctx, "p {} 1", b.hash); err != nil {
				t.Fatal(err)
			}
			if err := b.Minted(ctx, "q", b.hash); err != nil {
				t.Fatal(err)
			}
			want := []string{"p {} 1 " + b.hash.String(), "q " + b.hash.String()}
			eventually(t, "the changes are received", func() bool { changes, _ := e.heard(); return slices.Equal(changes, want) })

			tt.down(b.server)
			eventually(t, "the loss is noticed", subscribed(true, false))
			eventually(t, "the loss is logged", func() bool { return strings.Contains(logs.String(), "are not received") })
			tt.back(b.server)
			eventually(t, "subscribed again", subscribed(true, false, true))
			eventually(t, "changes can be announced", func() bool { return b.Changed(ctx, "p", b.hash) == nil })
			eventually(t, "a change is received again", func() bool { changes, _ := e.heard(); return len(changes) > 2 })
			if n := strings.Count(logs.String(), "received again"); n != 1 {
				t.Errorf("the return was logged %d times:\n%s", n, logs.String())
			}
		})
	}
}

func TestAnnounceReportsWhatItCouldNotDo(t *testing.T) {
	b := setup(t)
	b.server.Kill()
	start := time.Now()
	if err := b.Changed(t.Context(), "p", b.hash); err == nil {
		t.Error("announced without Redis")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}
