package redisdb

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Publish sends message to all who are subscribed to channel, at whatever node. In a cluster the nodes pass
// messages on among each other, so that any of them will do, and the next is asked when one fails. The driver
// would insist on the master of the slot that the channel's name has, which means nothing here, and be mute
// when that one dies. Sharded messages do stay within a slot's master and replicas, and are lost with them,
// which is why these are not.
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

// Subscribe hears what is published on channels. In a cluster it does so at any node that answers, for as long
// as that one does: a subscription that breaks is for the caller to make again, which is then at another.
func (c *Client) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	if cluster, ok := c.UniversalClient.(*redis.ClusterClient); ok {
		if nodes := c.nodes(ctx, cluster); len(nodes) > 0 {
			return nodes[0].Subscribe(ctx, channels...)
		}
	}
	return c.UniversalClient.Subscribe(ctx, channels...)
}

// nodes lists masters and replicas of a cluster in random order, those that answered when last asked first.
func (c *Client) nodes(ctx context.Context, cluster *redis.ClusterClient) []*redis.Client {
	ctx, cancel := context.WithTimeout(ctx, 4*c.limit)
	defer cancel()
	var (
		mu    sync.Mutex
		nodes []*redis.Client
	)
	// Its error is that nobody could be asked who is there; there is nobody then.
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
