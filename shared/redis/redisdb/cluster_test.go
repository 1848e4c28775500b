package redisdb_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lectern-dev/lectern/shared/redis/redisdb"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// hang is the limit of a command in tests with a Redis that hangs. A Redis that runs answers sooner even on a busy
// machine.
const hang = 2 * time.Second

func logTo(log *logtest.Buffer) redisdb.Options {
	return redisdb.Options{Log: slog.New(slog.NewTextHandler(log, nil))}
}

// keysOf returns a key in a slot of each third of the slots.
func keysOf() [3]string {
	var keys [3]string
	for i := 0; slices.Contains(keys[:], ""); i++ {
		key := fmt.Sprintf("key-%d", i)
		keys[slotOf(key)*3/16384] = key
	}
	return keys
}

// slotOf returns the slot of a key without braces (Redis Cluster specification, "Key distribution model").
func slotOf(key string) int {
	crc := uint16(0)
	for _, c := range []byte(key) {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % 16384
}

// TestClusterGoesOnWithoutAMaster checks that a cluster serves again once a replica has replaced a master that is down.
// The client uses the replica and does not need the failed node.
func TestClusterGoesOnWithoutAMaster(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		down, back func(*redistest.Server)
	}{
		{"killed", (*redistest.Server).Kill, (*redistest.Server).Restart},
		{"hanging", (*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cluster := redistest.StartCluster(t)
			var log logtest.Buffer
			c := open(t, redistest.Patient(cluster.URL, hang), logTo(&log))
			ctx := t.Context()
			keys := keysOf()
			for _, key := range keys {
				eventually.Succeeds(t, "a command is answered", func() error { return c.Set(ctx, key, "v", 0).Err() })
			}
			dead := cluster.AwaitMaster(slotOf(keys[1]))
			tt.down(dead)

			eventually.True(t, "the replica serves", func() bool { return c.Set(ctx, keys[1], "v", 0).Err() == nil })
			eventually.True(t, "the dead one is not missed", c.Up)
			for _, key := range keys {
				if err := c.Set(ctx, key, "v", 0).Err(); err != nil {
					t.Errorf("%s: %v", key, err)
				}
			}
			tt.back(dead)
			cluster.AwaitHealthy()
			eventually.True(t, "the return is logged", func() bool { return strings.Contains(log.String(), "is back") })
			for range 20 {
				for _, key := range keys {
					if err := c.Set(ctx, key, "v", 0).Err(); err != nil {
						t.Errorf("after the return, %s: %v", key, err)
					}
				}
			}
		})
	}
}

// TestClusterThatIsDownIsLeftAlone checks that a cluster that is down gets no commands, like a failing single node. The cluster
// gets commands again when it serves, also after a restart of all nodes without their data.
func TestClusterThatIsDownIsLeftAlone(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	c := open(t, redistest.Patient(cluster.URL, hang), logTo(&logtest.Buffer{}))
	keys := keysOf()
	eventually.Succeeds(t, "a command is answered", func() error { return c.Set(t.Context(), keys[0], "v", 0).Err() })
	// If a slot has no node, the whole cluster is down.
	node := cluster.AwaitMaster(slotOf(keys[2]))
	if err := redistest.Client(node).Do(t.Context(), "CLUSTER", "DELSLOTS", slotOf(keys[2])).Err(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the cluster is down", func() bool { return c.Get(t.Context(), keys[2]).Err() != nil })
	eventually.True(t, "Up reports false", func() bool { _ = c.Get(t.Context(), keys[2]); return !c.Up() })
	unsent := 0
	for range 200 {
		if err := c.Get(t.Context(), keys[2]).Err(); errors.Is(err, redisdb.ErrDown) {
			unsent++
		}
	}
	if unsent < 190 {
		t.Errorf("%d of 200 commands were not sent", unsent)
	}
	if err := redistest.Client(node).Do(t.Context(), "CLUSTER", "ADDSLOTS", slotOf(keys[2])).Err(); err != nil {
		t.Fatal(err)
	}
	for _, back := range []func(){func() {}, cluster.RestartEmpty} {
		back()
		cluster.AwaitHealthy()
		for _, key := range keys {
			eventually.True(t, "served again", func() bool { return c.Set(t.Context(), key, "v", 0).Err() == nil })
		}
		eventually.True(t, "Up reports true", c.Up)
	}
}

// TestClusterIsReshardedWhileItServes checks that no command fails while keys move from one master to another.
func TestClusterIsReshardedWhileItServes(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	c := open(t, redistest.Patient(cluster.URL, time.Minute), logTo(&logtest.Buffer{}))
	const n = 300
	script := redis.NewScript(`return redis.call('INCR', KEYS[1])`)
	name := func(i int) string { return fmt.Sprintf("moved-%d", i) }
	from, to := cluster.AwaitMaster(0), cluster.AwaitMaster(16383)
	var mine []int // slots to move, with and without keys
	for i := range n {
		if slot := slotOf(name(i)); slot < 16384/3 {
			mine = append(mine, slot)
		}
	}
	slices.Sort(mine)
	mine = slices.Compact(mine)
	moved := make(chan error, 1)
	go func() { moved <- cluster.MoveSlots(context.WithoutCancel(t.Context()), from, to, mine) }()
	rounds := 0
	var err error
	for done := false; !done; rounds++ {
		select {
		case err = <-moved:
			done = true
		default:
		}
		for i := range n {
			got, err := script.Run(t.Context(), c, []string{name(i)}).Int()
			if err != nil || got != rounds+1 {
				t.Fatalf("round %d, %s: %d, %v", rounds, name(i), got, err)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d slots moved during %d commands", len(mine), rounds*n)
}
