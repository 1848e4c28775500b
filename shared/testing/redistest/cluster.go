package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// slots is the number of hash slots of a cluster.
const slots = 16384

// nodeTimeout is the time that a node may be silent before the others mark it as down and its replica replaces it. It
// is short because tests wait for it.
const nodeTimeout = time.Second

// Cluster is a Redis Cluster of three masters with a replica each, for one test. Roles change when the test makes
// nodes fail.
type Cluster struct {
	// Nodes are the servers. At first the even ones are masters, each followed by its replica.
	Nodes []*Server

	// URL names all nodes.
	URL config.ServerURL

	t   testing.TB
	ids []string // of the nodes within the cluster
}

// StartCluster starts a cluster, waits until it serves, and stops it when t ends.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	const masters, nodes = 3, 6
	c := &Cluster{t: t, Nodes: make([]*Server, nodes), ids: make([]string, nodes)}
	for i := range c.Nodes {
		c.Nodes[i] = start(t, clusterNode)
	}
	query := make([]string, 0, nodes)
	for i, s := range c.Nodes {
		if i > 0 {
			query = append(query, "addr="+s.Addr())
		}
		c.ids[i] = c.text(s, "CLUSTER", "MYID")
		c.do(s, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	c.URL = config.NewServerURL("redis+cluster://" + c.Nodes[0].Addr() + "?" + strings.Join(query, "&"))
	for i := range masters {
		c.do(c.Nodes[2*i], "CLUSTER", "ADDSLOTSRANGE", slots*i/masters, slots*(i+1)/masters-1)
	}
	for _, s := range c.Nodes[1:] {
		c.do(c.Nodes[0], "CLUSTER", "MEET", "127.0.0.1", s.port, c.text(s, "CONFIG", "GET", "cluster-port"))
	}
	until(c, "all nodes know each other", func(ctx context.Context, s *Server, client *redis.Client) bool {
		return strings.Contains(client.ClusterInfo(ctx).Val(), "cluster_known_nodes:"+strconv.Itoa(nodes)+"\r") &&
			!strings.Contains(client.ClusterNodes(ctx).Val(), "handshake")
	})
	for i := range masters {
		c.do(c.Nodes[2*i+1], "CLUSTER", "REPLICATE", c.ids[2*i])
	}
	c.AwaitHealthy()
	return c
}

// clusterNode returns the arguments of a node. It takes another port for the cluster bus, because the default, 10,000
// above the node's port, may not exist.
func clusterNode(s *Server) ([]string, error) {
	return []string{
		"--port", strconv.Itoa(s.port), "--cluster-port", strconv.Itoa(needs.Port(s.t)), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", s.dir, "--daemonize", "no",
		"--cluster-enabled", "yes", "--cluster-node-timeout", strconv.Itoa(int(nodeTimeout.Milliseconds())),
		"--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
	}, nil
}

// AwaitHealthy waits until the cluster works again. Every running node reports it as healthy, a running master serves
// every slot, and every running replica is in step with its master.
func (c *Cluster) AwaitHealthy() {
	c.t.Helper()
	until(c, "the cluster is healthy", func(ctx context.Context, s *Server, client *redis.Client) bool {
		if !strings.Contains(client.ClusterInfo(ctx).Val(), "cluster_state:ok") {
			return false
		}
		replication := client.Info(ctx, "replication").Val()
		return strings.Contains(replication, "role:master") || strings.Contains(replication, "master_link_status:up")
	})
	for _, slot := range []int{0, slots / 2, slots - 1} {
		c.AwaitMaster(slot)
	}
}

// AwaitMaster waits until all running nodes name the same running server for the slot, and returns that server.
func (c *Cluster) AwaitMaster(slot int) *Server {
	c.t.Helper()
	var found *Server
	deadline := time.Now().Add(bound)
	for {
		if found = c.master(slot); found != nil {
			return found
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("redistest: no master of slot %d within %v", slot, bound)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// master returns the running server that all running nodes name as the slot's master, or nil if there is none.
func (c *Cluster) master(slot int) *Server {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	addr := ""
	for _, s := range c.Nodes {
		if !s.Running() {
			continue
		}
		client := connect(s)
		shards, err := client.ClusterShards(ctx).Result()
		_ = client.Close()
		if err != nil {
			return nil
		}
		named := ""
		for _, shard := range shards {
			for _, r := range shard.Slots {
				if int(r.Start) <= slot && slot <= int(r.End) {
					named = masterOf(shard)
				}
			}
		}
		if named == "" || addr != "" && named != addr {
			return nil
		}
		addr = named
	}
	for _, s := range c.Nodes {
		if s.Addr() == addr && s.Running() {
			return s
		}
	}
	return nil
}

// RestartEmpty kills all nodes at once and restarts them. They still know each other but have no data, like a cluster
// without persistence after a power failure.
func (c *Cluster) RestartEmpty() {
	c.t.Helper()
	var all sync.WaitGroup
	for _, s := range c.Nodes {
		all.Go(s.Kill)
	}
	all.Wait()
	for _, s := range c.Nodes {
		s.Restart()
	}
}

// MoveSlots moves slots one by one from one node to another, as in a resharding of a running cluster. Keys move one by
// one, and clients are redirected in the meantime.
func (c *Cluster) MoveSlots(ctx context.Context, from, to *Server, slots []int) error {
	source, target := connect(from), connect(to)
	defer source.Close()
	defer target.Close()
	sourceID, targetID := c.id(from), c.id(to)
	for _, slot := range slots {
		err := errors.Join(
			target.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", sourceID).Err(),
			source.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", targetID).Err())
		for err == nil {
			keys, listErr := source.ClusterGetKeysInSlot(ctx, slot, 100).Result()
			if err = listErr; err != nil || len(keys) == 0 {
				break
			}
			args := []any{"MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS"}
			for _, key := range keys {
				args = append(args, key)
			}
			err = source.Do(ctx, args...).Err()
		}
		// Tell the new owner first. The old owner redirects clients until it also knows.
		err = errors.Join(err,
			target.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", targetID).Err(),
			source.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", targetID).Err())
		if err != nil {
			return fmt.Errorf("move slot %d: %w", slot, err)
		}
	}
	return nil
}

// masterOf returns the address of a shard's master, or "" if there is none.
func masterOf(shard redis.ClusterShard) string {
	for _, n := range shard.Nodes {
		if n.Role == "master" && n.Health == "online" {
			return net.JoinHostPort(n.IP, strconv.FormatInt(n.Port, 10))
		}
	}
	return ""
}

func (c *Cluster) id(s *Server) string {
	for i := range c.Nodes {
		if c.Nodes[i] == s {
			return c.ids[i]
		}
	}
	return ""
}

// until waits until ok returns true for every running node.
func until(c *Cluster, what string, ok func(context.Context, *Server, *redis.Client) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*bound)
	defer cancel()
	for _, s := range c.Nodes {
		if !s.Running() {
			continue
		}
		client := connect(s)
		for !ok(ctx, s, client) {
			select {
			case <-ctx.Done():
				c.t.Fatalf("redistest: not within %v: %s; %s says\n%s%s", 2*bound, what, s.Addr(),
					client.ClusterInfo(context.Background()).Val(), client.ClusterNodes(context.Background()).Val())
			case <-time.After(5 * time.Millisecond):
			}
		}
		_ = client.Close()
	}
}

func (c *Cluster) do(s *Server, args ...any) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	client := connect(s)
	defer client.Close()
	if err := client.Do(ctx, args...).Err(); err != nil {
		c.t.Fatalf("redistest: %v: %v", args, err)
	}
}

// text returns a node's text answer to a command, or the value of the requested setting.
func (c *Cluster) text(s *Server, args ...any) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	client := connect(s)
	defer client.Close()
	answer, err := client.Do(ctx, args...).Result()
	if err != nil {
		c.t.Fatalf("redistest: %v: %v", args, err)
	}
	if settings, ok := answer.(map[any]any); ok {
		for _, value := range settings {
			return fmt.Sprint(value)
		}
	}
	return fmt.Sprint(answer)
}
