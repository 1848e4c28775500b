package redisdb_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/redis/redisdb"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// client is a Client with its commands.
type client struct {
	redis.UniversalClient
	guarded *redisdb.Client
}

func (c client) Up() bool     { return c.guarded.Up() }
func (c client) Close() error { return c.guarded.Close() }

func open(t *testing.T, url config.ServerURL, o redisdb.Options) client {
	t.Helper()
	c, err := redisdb.Open(redisdb.Config{URL: url}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return client{redisdb.Commands(c), c}
}

// TestRedisIsLeftAloneWhileItFails checks that a failing Redis delays only the first commands, by one time limit. It is
// used again soon after it is back.
func TestRedisIsLeftAloneWhileItFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		down, back func(*redistest.Server)
	}{
		{"killed", (*redistest.Server).Kill, (*redistest.Server).Restart},
		{"stopped", (*redistest.Server).Stop, (*redistest.Server).Restart},
		{"hanging", (*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			var log logtest.Buffer
			c := open(t, redistest.Patient(server.URL, hang), logTo(&log))
			ctx := t.Context()
			if err := c.Set(ctx, "k", "v", 0).Err(); err != nil || !c.Up() {
				t.Fatalf("%v, up: %v", err, c.Up())
			}

			tt.down(server)
			var down int
			for range 1000 {
				err := c.Get(ctx, "k").Err()
				if err == nil {
					t.Fatal("answered while it is down")
				}
				if errors.Is(err, redisdb.ErrDown) {
					down++
				}
			}
			if down < 990 {
				t.Errorf("%d of 1000 commands were not sent", down)
			}
			if _, err := c.Pipelined(ctx, func(p redis.Pipeliner) error { p.Get(ctx, "k"); return nil }); !errors.Is(err, redisdb.ErrDown) {
				t.Errorf("a pipeline: %v", err)
			}
			if c.Up() {
				t.Error("Up reports true")
			}

			tt.back(server)
			eventually.True(t, "commands are sent again", func() bool {
				err := c.Get(ctx, "k").Err()
				return err == nil || errors.Is(err, redis.Nil)
			})
			eventually.True(t, "Up reports true", c.Up)
			eventually.True(t, "the log says so", func() bool { return strings.Contains(log.String(), "is back") })
			if out, back := strings.Count(log.String(), "out of reach"), strings.Count(log.String(), "is back"); out != 1 || back != 1 {
				t.Errorf("logged %d times down and %d times back:\n%s", out, back, log.String())
			}
		})
	}
}

// TestReadOnlyReplicaIsLeftAlone checks that a node that became a replica gets no commands until it accepts writes
// again.
func TestReadOnlyReplicaIsLeftAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := open(t, redistest.Patient(server.URL, time.Minute), redisdb.Options{})
	ctx, admin := t.Context(), redistest.Client(server)
	if err := admin.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(ctx, "k", "v", 0).Err(); err == nil {
		t.Fatal("a replica took a write")
	}
	if c.Up() {
		t.Fatal("Up reports true")
	}
	probed := regexp.MustCompile(`cmdstat_set:.*rejected_calls=[3-9]`) // the command above and two probes
	eventually.True(t, "the replica refuses probes", func() bool {
		if err := c.Set(ctx, "k", "v", 0).Err(); !errors.Is(err, redisdb.ErrDown) {
			t.Fatalf("sent to a replica: %v", err)
		}
		return probed.MatchString(admin.Info(ctx, "commandstats").Val())
	})
	if err := admin.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "writes are sent again", func() bool { return c.Set(ctx, "k", "v", 0).Err() == nil })
}

func TestAnswersAreNoFaults(t *testing.T) {
	c := open(t, redistest.Patient(redistest.Start(t).URL, time.Minute), redisdb.Options{})
	ctx := t.Context()
	if err := c.Get(ctx, "nothing").Err(); !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	if err := c.Do(ctx, "NOSUCHCOMMAND").Err(); err == nil {
		t.Fatal("no error")
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Get(gone, "k").Err(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, time.Nanosecond)
	defer cancel()
	if err := c.Get(short, "k").Err(); err == nil {
		t.Fatal("no error")
	}
	if !c.Up() {
		t.Error("Up reports false")
	}
	if err := c.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Error(err)
	}
}

func TestCloseLeavesNothingRunning(t *testing.T) {
	server := redistest.Start(t)
	ignore := goleak.IgnoreCurrent()
	c := open(t, redistest.Patient(server.URL, time.Minute), redisdb.Options{})
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if err := c.Get(t.Context(), "k").Err(); err == nil {
		t.Fatal("answered while it is down")
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	goleak.VerifyNone(t, ignore)
}

func TestSpansHoldNoArguments(t *testing.T) {
	server := redistest.Start(t)
	spans := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))
	c := open(t, redistest.Patient(server.URL, time.Minute), redisdb.Options{Tracer: provider})
	if err := c.Set(t.Context(), "canary-name", "canary-value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, s := range spans.GetSpans() {
		found = found || s.Name == "set"
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.String(), "canary") {
				t.Errorf("%s has %s = %s", s.Name, a.Key, a.Value.String())
			}
		}
	}
	if !found {
		t.Errorf("no span of the command among %d", len(spans.GetSpans()))
	}
}
