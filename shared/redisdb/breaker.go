package redisdb

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// breaker stands before one node (or before a whole cluster). While it is open, commands end at once
// with ErrDown; one goroutine probes until the node answers.
type breaker struct {
	client *Client
	node   string
	probe  func(context.Context) error
	open   atomic.Bool

	// whole marks the breaker before a cluster: it minds only what fails before a node was reached,
	// as each node has a breaker of its own.
	whole bool
}

var _ redis.Hook = (*breaker)(nil)

func newBreaker(c *Client, node string, probe func(context.Context) error) *breaker {
	return &breaker{client: c, node: node, probe: probe}
}

func newClusterBreaker(c *Client, cluster *redis.ClusterClient) *breaker {
	b := &breaker{client: c, node: "cluster", whole: true}
	b.probe = func(ctx context.Context) error {
		reached := new(atomic.Bool)
		err := cluster.Get(context.WithValue(ctx, reachedKey{}, reached), "lectern:probe").Err()
		if err == nil || reached.Load() {
			return nil
		}
		return err
	}
	return b
}

type (
	probeKey   struct{} // marks a probe, which an open breaker lets through
	reachedKey struct{} // *atomic.Bool: a node of the cluster took the command
)

// DialHook leaves dialling as it is.
func (b *breaker) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return next(ctx, network, addr)
	}
}

// ProcessHook bounds a command in time and minds how it ends.
func (b *breaker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := b.run(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
		if errors.Is(err, ErrDown) {
			cmd.SetErr(err)
		}
		return err
	}
}

// ProcessPipelineHook does the same for a pipeline.
func (b *breaker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := b.run(ctx, func(ctx context.Context) error { return next(ctx, cmds) })
		if errors.Is(err, ErrDown) {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

func (b *breaker) run(ctx context.Context, command func(context.Context) error) error {
	if b.open.Load() && ctx.Value(probeKey{}) == nil {
		return ErrDown
	}
	reached, _ := ctx.Value(reachedKey{}).(*atomic.Bool)
	bounded, cancel := context.WithTimeout(ctx, b.client.limit)
	defer cancel()
	if b.whole {
		if reached == nil {
			reached = new(atomic.Bool)
			bounded = context.WithValue(bounded, reachedKey{}, reached)
		}
	} else if reached != nil {
		reached.Store(true)
	}

	err := command(bounded)
	switch {
	case !isFault(err), ctx.Err() != nil:
		// Redis answered, or the caller gave up before it could.
	case b.whole && reached.Load():
	default:
		b.trip(err)
	}
	return err
}

// isFault tells whether err says that Redis is of no use. An error that Redis itself sends is an answer,
// but for those of a node that still reads its data, or is a replica since a failover, or serves nobody as
// there are slots that nobody serves, be it for the moment of a failover: the driver would try each command
// again, after a while or on a new connection.
func isFault(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) || errors.Is(err, ErrDown) ||
		errors.Is(err, redis.ErrClosed) || errors.Is(err, context.Canceled) {
		return false
	}
	if answer, ok := errors.AsType[redis.Error](err); ok {
		return redis.IsLoadingError(answer) || redis.IsReadOnlyError(answer) || redis.IsClusterDownError(answer)
	}
	return true
}

// trip opens the breaker and starts its probe, unless it is open already.
func (b *breaker) trip(err error) {
	c := b.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !b.open.CompareAndSwap(false, true) {
		return
	}
	c.down[b] = true
	c.log.Warn("redis is out of reach; going on without it", slog.String("node", b.node), slog.Any("error", err))
	if cluster, ok := c.UniversalClient.(*redis.ClusterClient); ok {
		cluster.ReloadState(c.ctx)
	}
	c.probes.Go(func() { b.await(time.Now()) })
}

// await probes until the node answers, is no longer part of the cluster, or the client is closed. Meanwhile a
// cluster is asked who serves what: a dead master answers no command with the address of who took its place.
func (b *breaker) await(since time.Time) {
	c := b.client
	timer := time.NewTimer(c.rest)
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-timer.C:
		}
		ctx := context.WithValue(c.ctx, probeKey{}, true)
		missed := b.missed(ctx)
		err := b.probe(ctx)
		if err == nil || errors.Is(err, redis.ErrClosed) {
			c.mu.Lock()
			delete(c.down, b)
			c.mu.Unlock()
			if err == nil {
				b.open.Store(false)
				c.log.Info("redis is back", slog.String("node", b.node), slog.Duration("away", time.Since(since)))
			}
			return
		}
		c.mu.Lock()
		c.down[b] = missed
		c.mu.Unlock()
		timer.Reset(c.rest)
	}
}

// missed tells whether commands go to what the breaker stands before, by what the cluster says now. A node
// whose place another one took is not missed.
func (b *breaker) missed(ctx context.Context) bool {
	cluster, ok := b.client.UniversalClient.(*redis.ClusterClient)
	if !ok || b.whole {
		return true
	}
	master := new(atomic.Bool)
	err := cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		if node.Options().Addr == b.node {
			master.Store(true)
		}
		return nil
	})
	return err != nil || master.Load()
}
