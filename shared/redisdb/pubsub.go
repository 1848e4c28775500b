package redisdb

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Publish sends message to all subscribers of channel. In a cluster, plain PUBLISH reaches every node from any node,
// so Publish tries one node after the other. The driver would only try the master of the channel's slot, and fail
// with it. Sharded PUBLISH would fail with its shard.
func (c *Client) Publish(ctx context.Context, channel string, message any) *redis.IntCmd {
	cluster, ok := c.UniversalClient.(*redis.ClusterClient)
	if !ok {
		return c.UniversalClient.Publish(ctx, channel, message)
	}
	cmd := redis.NewIntCmd(ctx, "publish", channel, message)
	cmd.SetErr(ErrDown)
	for _, node := range c.nodes(ctx, cluster) {
		if cmd = node.Publish(ctx, channel, message); cmd.Err() == nil {
			break
		}
	}
	return cmd
}

// Subscribe receives the messages of channels. In a cluster it subscribes at any node that answers. If that node
// fails, the caller calls Subscribe again, which uses another node.
func (c *Client) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	if cluster, ok := c.UniversalClient.(*redis.ClusterClient); ok {
		if nodes := c.nodes(ctx, cluster); len(nodes) > 0 {
			return nodes[0].Subscribe(ctx, channels...)
		}
	}
	return c.UniversalClient.Subscribe(ctx, channels...)
}

// nodes lists masters and replicas of a cluster in random order. Nodes that answered the last time come first.
func (c *Client) nodes(ctx context.Context, cluster *redis.ClusterClient) []*redis.Client {
	ctx, cancel := context.WithTimeout(ctx, 4*c.commandTimeout)
	defer cancel()
	var (
		mu    sync.Mutex
		nodes []*redis.Client
	)
	// ForEachShard fails if no node lists the others. The list is empty then.
	_ = cluster.ForEachShard(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	})
	rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	down := map[string]int{}
	c.mu.Lock()
	for b := range c.down {
		down[b.node] = 1
	}
	c.mu.Unlock()
	slices.SortStableFunc(nodes, func(a, b *redis.Client) int { return down[a.Options().Addr] - down[b.Options().Addr] })
	return nodes
}
