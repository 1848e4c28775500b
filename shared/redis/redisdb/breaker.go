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

// breaker guards one node of Redis, or a whole cluster. While the breaker is open, commands end at once with ErrDown,
// and one goroutine probes the node until it answers.
type breaker struct {
	client *Client
	node   string
	probe  func(context.Context) error
	open   atomic.Bool

	// answered is when a command was last answered, in Unix nanoseconds.
	answered atomic.Int64

	// clusterBreaker marks the breaker of a whole cluster. Such a breaker counts only failures before a node was
	// reached, because each node has a breaker of its own.
	clusterBreaker bool
}

func newBreaker(c *Client, node string, probe func(context.Context) error) *breaker {
	return &breaker{client: c, node: node, probe: probe}
}

func newClusterBreaker(c *Client, cluster *redis.ClusterClient) *breaker {
	b := &breaker{client: c, node: "cluster", clusterBreaker: true}
	b.probe = func(ctx context.Context) error {
		nodeReached := new(atomic.Bool)
		err := cluster.Get(context.WithValue(ctx, nodeReachedKey{}, nodeReached), "lectern:probe").Err()
		if err == nil || nodeReached.Load() {
			return nil
		}
		return err
	}
	return b
}

type (
	probeKey       struct{} // marks a probe, which an open breaker lets through
	nodeReachedKey struct{} // *atomic.Bool: a node of the cluster took the command
)

// hook makes the commands of a node, or of a whole cluster, pass the embedded breaker.
type hook struct{ *breaker }

var _ redis.Hook = hook{}

// DialHook returns a dialler that does the same as next, because the breaker guards only commands.
func (b hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return next(ctx, network, addr)
	}
}

// ProcessHook returns next with the breaker around it: a command has bounded time, and opens the breaker if Redis
// cannot serve it. While the breaker is open, the command ends with ErrDown.
func (b hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := b.run(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
		if errors.Is(err, ErrDown) {
			cmd.SetErr(err)
		}
		return err
	}
}

// ProcessPipelineHook returns next with the breaker around it, for a pipeline of commands. While the breaker is open,
// each command of the pipeline ends with ErrDown.
func (b hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
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
	nodeReached, _ := ctx.Value(nodeReachedKey{}).(*atomic.Bool)
	bounded, cancel := context.WithTimeout(ctx, b.client.commandTimeout)
	defer cancel()
	if b.clusterBreaker {
		if nodeReached == nil {
			nodeReached = new(atomic.Bool)
			bounded = context.WithValue(bounded, nodeReachedKey{}, nodeReached)
		}
	} else if nodeReached != nil {
		nodeReached.Store(true)
	}

	err := command(bounded)
	if !b.clusterBreaker && !b.client.answered.Load() {
		if _, refused := errors.AsType[redis.Error](err); err == nil || refused && !isFault(err) {
			b.client.answered.Store(true)
		}
	}
	switch {
	case !isFault(err):
		b.answered.Store(time.Now().UnixNano())
	case ctx.Err() != nil: // the caller gave up before Redis could answer
	case timedOut(err) && time.Now().UnixNano()-b.answered.Load() < int64(b.client.commandTimeout):
		// Redis has answered other commands since this command began. A process that has too little CPU, or waits for a
		// connection of its pool, is late by itself.
	case b.clusterBreaker && nodeReached.Load(): // the node has a breaker of its own
	default:
		b.trip(err)
	}
	return err
}

// timedOut reports whether err means that Redis, or a connection of the pool, did not answer in time.
func timedOut(err error) bool {
	late, ok := errors.AsType[net.Error](err)
	return ok && late.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout)
}

// isFault reports whether err means that Redis cannot serve now. An error reply is an answer, except LOADING, READONLY
// and CLUSTERDOWN, after which the driver would retry each command.
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

// trip opens the breaker because of err and starts its probes. If the breaker is open already, or the client is closed,
// trip does nothing.
func (b *breaker) trip(err error) {
	c := b.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !b.open.CompareAndSwap(false, true) {
		return
	}
	c.down[b] = true
	c.fault = err
	c.log.Warn("redis is out of reach; going on without it", slog.String("node", b.node), slog.Any("error", err))
	if cluster, ok := c.connection.(*redis.ClusterClient); ok {
		cluster.ReloadState(c.ctx)
	}
	c.probes.Go(func() { b.await(time.Now()) })
}

// await probes until the node answers, is no longer part of the cluster, or the client is closed. Before each probe
// await asks the cluster which nodes serve: a dead master cannot redirect a command to the node that took its place.
func (b *breaker) await(since time.Time) {
	c := b.client
	timer := time.NewTimer(probeInterval)
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-timer.C:
		}
		ctx := context.WithValue(c.ctx, probeKey{}, true)
		needed := b.needed(ctx)
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
		c.down[b], c.fault = needed, err
		c.mu.Unlock()
		timer.Reset(probeInterval)
	}
}

// needed reports whether the cluster now sends commands to the breaker's node. The result is false only if the cluster
// says that the node is no master.
func (b *breaker) needed(ctx context.Context) bool {
	cluster, ok := b.client.connection.(*redis.ClusterClient)
	if !ok || b.clusterBreaker {
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
