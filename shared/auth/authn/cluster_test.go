package authn_test

import (
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// TestRedisClusterFault uses and revokes keys with a cluster of six, whose master is then killed. Callers see only a
// short delay.
func TestRedisClusterFault(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	s := startKeyLoad(t, redistest.Patient(cluster.URL, time.Minute))
	revokeInUse(t, s.keys, s.processes, time.Second, func() {}, func() {})
	key := s.keys.Key("rated")
	eventually.True(t, "the cluster keeps a rate", func() bool {
		_, rate, err := s.processes[0].Guard.Check(t.Context(), "rated", key, auth.EntriesRead)
		return err == nil && rate.Remaining < s.keys.Config.KeyRate().Burst
	})
	var lost *redistest.Server
	s.fault("master killed", func() {
		lost = cluster.AwaitMaster(0)
		lost.Kill()
		cluster.AwaitMaster(0)
	}, func() {
		lost.Restart()
		cluster.AwaitHealthy()
	})
}

// TestLongRedisClusterFaults causes further faults in one cluster: a master hangs, and all nodes restart without their
// data.
func TestLongRedisClusterFaults(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	cluster := redistest.StartCluster(t)
	s := startKeyLoad(t, cluster.URL)
	var lost *redistest.Server
	s.fault("master hangs", func() {
		lost = cluster.AwaitMaster(8192)
		lost.Pause()
		cluster.AwaitMaster(8192)
	}, func() {
		lost.Resume()
		cluster.AwaitHealthy()
	})
	s.fault("restarted empty", cluster.RestartEmpty, cluster.AwaitHealthy)
}

func TestLongRedisSentinelFault(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	sentinel := redistest.StartSentinel(t)
	s := startKeyLoad(t, sentinel.URL)
	first := sentinel.Servers[0]
	s.fault("master hangs", func() {
		first.Pause()
		sentinel.AwaitMaster(first)
	}, first.Resume)
}
