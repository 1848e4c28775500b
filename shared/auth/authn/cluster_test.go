package authn_test

import (
	"context"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// clusterFault is a fault of a cluster.
type clusterFault struct {
	name  string
	harms bool
	begin func(*testing.T, *redistest.Cluster)
	end   func(*redistest.Cluster)
}

func clusterFaults() []clusterFault {
	var lost *redistest.Server
	return []clusterFault{
		{"master killed", true, func(_ *testing.T, c *redistest.Cluster) {
			lost = c.AwaitMaster(0)
			lost.Kill()
			c.AwaitMaster(0)
		}, func(c *redistest.Cluster) {
			lost.Restart()
			c.AwaitHealthy()
		}},
		{"master hangs", true, func(_ *testing.T, c *redistest.Cluster) {
			lost = c.AwaitMaster(8192)
			lost.Pause()
			c.AwaitMaster(8192)
		}, func(c *redistest.Cluster) {
			lost.Resume()
			c.AwaitHealthy()
		}},
		{"slots move", false, func(t *testing.T, c *redistest.Cluster) {
			from, to := c.AwaitMaster(0), c.AwaitMaster(16383)
			own := c.Slots(from)
			if err := c.MoveSlots(context.Background(), from, to, own[:min(len(own), 3000)]); err != nil {
				t.Error(err)
			}
		}, func(c *redistest.Cluster) { c.AwaitHealthy() }},
		{"restarted empty", true, func(_ *testing.T, c *redistest.Cluster) {
			c.RestartEmpty()
		}, func(c *redistest.Cluster) { c.AwaitHealthy() }},
	}
}

// TestRedisClusterFault kills a master of a cluster of six while keys are used and revoked. Callers see only a short
// delay.
func TestRedisClusterFault(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	s := startKeyLoad(t, cluster.URL)
	f := clusterFaults()[0]
	s.fault(f.name, f.harms, func() { f.begin(t, cluster) }, func() { f.end(cluster) })
}

func TestLongRedisClusterFaults(t *testing.T) {
	needs.Long(t)
	for _, f := range clusterFaults() {
		t.Run(f.name, func(t *testing.T) {
			cluster := redistest.StartCluster(t)
			s := startKeyLoad(t, cluster.URL)
			s.fault(f.name, f.harms, func() { f.begin(t, cluster) }, func() { f.end(cluster) })
		})
	}
}

func TestLongRedisSentinelFaults(t *testing.T) {
	needs.Long(t)
	for _, f := range []struct {
		name       string
		down, back func(*redistest.Server)
	}{
		{"master killed", (*redistest.Server).Kill, (*redistest.Server).Restart},
		{"master hangs", (*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(f.name, func(t *testing.T) {
			sentinel := redistest.StartSentinel(t)
			s := startKeyLoad(t, sentinel.URL)
			first := sentinel.Servers[0]
			s.fault(f.name, true, func() {
				f.down(first)
				sentinel.AwaitMaster(first)
			}, func() { f.back(first) })
		})
	}
}
