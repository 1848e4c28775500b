package app

import (
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestLongRedisFaultsUnderLoad checks that clients see only a short delay during faults of Redis.
func TestLongRedisFaultsUnderLoad(t *testing.T) {
	needs.Long(t)
	// Postgres has no fault here, so its time-outs are long enough for a busy machine.
	t.Setenv("PGCONNECT_TIMEOUT", "10")
	f := startBreakable(t, map[string]string{"DATABASE_ACQUIRE_TIMEOUT": "10s", "STATEMENT_TIMEOUT": "30s"})
	command := func(args ...any) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			if err := f.Redis.Client().Do(t.Context(), args...).Err(); err != nil {
				t.Fatalf("%v: %v", args, err)
			}
		}
	}
	plain := func(do func()) func(*testing.T) { return func(*testing.T) { do() } }
	for _, fault := range []struct {
		name       string
		begin, end func(*testing.T)
	}{
		{"killed", plain(f.Redis.Kill), plain(f.Redis.Restart)},
		{"stopped", plain(f.Redis.Pause), plain(f.Redis.Resume)},
		{"slow", plain(func() { f.redis.Slow(500 * time.Millisecond) }), plain(f.redis.Heal)},
		{"reset", plain(f.redis.Refuse), plain(f.redis.Heal)},
		{"half-open", plain(f.redis.Silence), plain(f.redis.Heal)},
		{"memory full", command("CONFIG", "SET", "maxmemory", "1"), command("CONFIG", "SET", "maxmemory", "0")},
		{"read-only replica", command("REPLICAOF", "127.0.0.1", "1"), command("REPLICAOF", "NO", "ONE")},
		{"flushed", command("FLUSHALL"), plain(func() {})},
	} {
		t.Run(fault.name, func(t *testing.T) {
			load := f.load(t)
			load.Await(20)
			fault.begin(t)
			load.Await(100)
			f.checkKeys(t, "meanwhile")
			checkHealth(t, f.Service, "meanwhile")
			fault.end(t)
			recovered := eventually.True(t, "Redis is used again", func() bool {
				a := f.DoInternal(t, servicetest.Request{Path: "/readyz"})
				return strings.Contains(string(a.Body), `"redis":"ok"`)
			})
			load.Await(50)
			f.checkKeys(t, "afterwards")
			report := load.Stop()
			report.Check(t, fault.name)
			t.Logf("Redis is used again after %v", recovered)
			if report.Refused > 0 || report.Broken > 0 {
				t.Errorf("clients saw a fault of Redis: %v", report)
			}
			if report.Gap > time.Minute {
				t.Errorf("nothing was answered for %v", report.Gap)
			}
		})
	}
}
