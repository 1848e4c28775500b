package redisdb_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// TestSentinelNamesAnotherMaster checks that the client replaces a master that dies or hangs with the node that takes
// over. This also works if the Sentinel that it asked before hangs.
func TestSentinelNamesAnotherMaster(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		down, back func(*redistest.Server)
		hang       bool // of a Sentinel
	}{
		{"killed", (*redistest.Server).Kill, (*redistest.Server).Restart, false},
		{"hanging", (*redistest.Server).Pause, (*redistest.Server).Resume, false},
		{"a Sentinel hangs", (*redistest.Server).Kill, (*redistest.Server).Restart, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.StartSentinel(t)
			c := open(t, s.URL, logTo(&logtest.Buffer{}))
			ctx := t.Context()
			eventually.Succeeds(t, "a command is answered", func() error { return c.Set(ctx, "k", "v", 0).Err() })
			if tt.hang {
				asked := false
				for _, w := range s.Sentinels {
					// Only the client subscribes at a Sentinel, because Sentinels do not subscribe at each other.
					if clients, err := redistest.Client(w).Do(ctx, "CLIENT", "LIST").Text(); err == nil && strings.Contains(clients, " sub=2 ") {
						w.Pause()
						defer w.Resume()
						asked = true
						break
					}
				}
				if !asked {
					t.Fatal("no Sentinel has a subscriber")
				}
			}
			first := s.Servers[0]
			tt.down(first)
			eventually.True(t, "commands are taken", func() bool { return c.Set(ctx, "k", "v", 0).Err() == nil })
			second := s.AwaitMaster(first)
			eventually.True(t, "Up reports true", c.Up)

			// The old master comes back and still acts as a master for a while. It gets no commands.
			tt.back(first)
			for range 50 {
				value := strconv.FormatInt(time.Now().UnixNano(), 10)
				err := c.Set(ctx, "k", value, 0).Err()
				got := redistest.Client(second).Get(ctx, "k").Val()
				if err == nil && got == value {
					continue
				}
				if s.Master() == second {
					t.Fatalf("the master has %q, want %q; %v", got, value, err)
				}
				second = s.AwaitMaster(nil) // on a busy machine the Sentinels may name another master again
			}
		})
	}
}
