package rediskeys_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth/rediskeys"
	"github.com/lectern-dev/lectern/shared/redisdb"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// ear is a Listener that keeps what it hears.
type ear struct {
	mu     sync.Mutex
	shards []byte
	doubts int
}

func (e *ear) Changed(shard byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shards = append(e.shards, shard)
}

func (e *ear) Doubt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.doubts++
}

func (e *ear) heard() (string, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return string(e.shards), e.doubts
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
				e    ear
				logs logtest.Buffer
				wg   sync.WaitGroup
			)
			ctx, cancel := context.WithCancel(t.Context())
			wg.Go(func() { rediskeys.Listen(ctx, client, &e, slog.New(slog.NewTextHandler(&logs, nil))) })
			defer wg.Wait()
			defer cancel()

			eventually(t, "subscribed", func() bool { _, doubts := e.heard(); return doubts == 1 })
			b.redis.Publish(ctx, "lectern:keys:changed", "not a shard")
			b.redis.Publish(ctx, "lectern:keys:changed", "100")
			b.hash[0] = 0xfe
			if err := b.Announce(ctx, "p", b.hash); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the change is heard", func() bool { shards, _ := e.heard(); return shards == "\xfe" })

			tt.down(b.server)
			eventually(t, "the loss is noticed", func() bool { return strings.Contains(logs.String(), "are not heard") })
			tt.back(b.server)
			eventually(t, "subscribed again", func() bool { _, doubts := e.heard(); return doubts >= 2 })
			eventually(t, "changes can be announced", func() bool { return b.Announce(ctx, "p", b.hash) == nil })
			eventually(t, "a change is heard again", func() bool { shards, _ := e.heard(); return len(shards) > 1 })
			if n := strings.Count(logs.String(), "heard again"); n != 1 {
				t.Errorf("the return was logged %d times:\n%s", n, logs.String())
			}
		})
	}
}

func TestAnnounceReportsWhatItCouldNotDo(t *testing.T) {
	b := setup(t)
	b.server.Kill()
	start := time.Now()
	if err := b.Announce(t.Context(), "p", b.hash); err == nil {
		t.Error("announced without Redis")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}
