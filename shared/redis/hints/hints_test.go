package hints_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/redis/hints"
	"github.com/lectern-dev/lectern/shared/redis/redisdb"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// TestHints checks that hints are received, and received again after a fault of Redis.
func TestHints(t *testing.T) {
	for _, tt := range []struct {
		name       string
		down, back func(*redistest.Server)
	}{
		{"killed", (*redistest.Server).Kill, (*redistest.Server).Restart},
		{"hanging", (*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := redistest.Start(t)
			client, err := redisdb.Open(redisdb.Config{URL: server.URL}, redisdb.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			var (
				logs     logtest.Buffer
				wg       sync.WaitGroup
				received = make(chan string, 1000)
			)
			h := hints.New(client, "channel", slog.New(slog.NewTextHandler(&logs, nil)))
			ctx, cancel := context.WithCancel(t.Context())
			wg.Go(func() { h.Publish(ctx) })
			wg.Go(func() { h.Receive(ctx, func(projectID string) { received <- projectID }) })
			defer wg.Wait()
			defer cancel()

			passes := func(project string) {
				t.Helper()
				eventually.True(t, "a hint is received", func() bool {
					h.Send(project)
					select {
					case got := <-received:
						return got == project
					case <-time.After(20 * time.Millisecond):
						return false
					}
				})
			}
			passes("p {} 1")
			tt.down(server)
			eventually.True(t, "the loss is logged", func() bool { return strings.Contains(logs.String(), "hints are not received") })
			tt.back(server)
			passes("q")
			eventually.True(t, "the return is logged", func() bool { return strings.Contains(logs.String(), "received again") })
		})
	}
}
