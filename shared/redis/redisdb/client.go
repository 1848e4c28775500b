package redisdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Options configures the log and the traces of a [Client]. The zero value is valid.
type Options struct {
	// Log reports when Redis, or a node of a cluster, goes down, and when it is back. Default: nothing is logged.
	Log *slog.Logger

	// Tracer records a span for each command except ping and log-in, without its arguments. Default: no spans.
	Tracer trace.TracerProvider
}

// probeInterval is the pause between a failure of Redis and the first probe, and between two probes.
const probeInterval = 500 * time.Millisecond

// Client is a Redis client that sends no commands while Redis fails. Commands then end with [ErrDown]. In a cluster the
// Client decides for each node separately.
//
// The fields and methods of Client name no type of go-redis. The compiler would otherwise emit go-redis' 1,500 methods
// again in each package that reaches a Client. [Commands] returns the commands.
type Client struct {
	connection io.Closer // a redis.UniversalClient

	log            *slog.Logger
	commandTimeout time.Duration

	ctx    context.Context // of the probes; ends with Close
	cancel context.CancelFunc
	probes sync.WaitGroup

	answered atomic.Bool // Redis has answered a command

	mu     sync.Mutex
	closed bool
	down   map[*breaker]bool // the open ones, and whether commands need their node
	fault  error             // opened the last breaker
}

// Open returns a client of the Redis that cfg names. Open does not wait for Redis: while Redis is down, commands fail.
// Open also turns off go-redis' own log for the whole process. The caller closes the client.
func Open(cfg Config, o Options) (*Client, error) {
	if !cfg.Enabled() {
		return nil, fault("is not set")
	}
	t, err := parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{log: o.Log, commandTimeout: t.commandTimeout(), down: map[*breaker]bool{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())

	// go-redis writes a line to standard error for each connection that it cannot open.
	redis.SetLogger(quiet{})

	var instrumentErr error
	instrument := func(node *redis.Client) {
		node.AddHook(hook{newBreaker(c, node.Options().Addr, func(ctx context.Context) error {
			// The probe writes, because a replica answers reads. A redirection to another node of the cluster
			// also counts as an answer.
			err := node.Set(ctx, "lectern:probe", "", time.Second).Err()
			if _, answered := errors.AsType[redis.Error](err); answered && !isFault(err) {
				return nil
			}
			return err
		})})
		if err := instrumentTracing(node, o.Tracer); err != nil {
			instrumentErr = err
		}
	}
	switch {
	case t.node != nil:
		node := redis.NewClient(t.node)
		instrument(node)
		c.connection = node
	case t.sentinel != nil:
		node := redis.NewFailoverClient(t.sentinel)
		instrument(node)
		c.connection = node
	case t.cluster != nil:
		cluster := redis.NewClusterClient(t.cluster)
		cluster.OnNewNode(instrument)
		cluster.AddHook(hook{newClusterBreaker(c, cluster)})
		c.connection = cluster
	}
	if instrumentErr != nil {
		return nil, errors.Join(fmt.Errorf("redisdb: trace: %w", instrumentErr), c.Close())
	}
	return c, nil
}

// Commands returns the go-redis commands of c, which end with [ErrDown] while Redis fails. The caller closes c, not the
// commands.
func Commands(c *Client) redis.UniversalClient { return c.connection.(redis.UniversalClient) }

// Script returns a function that runs the Lua script source for one key with the arguments args. The function returns the
// numbers of the script's answer.
func Script(client redis.Scripter, source string) func(ctx context.Context, key string, args ...any) ([]int64, error) {
	script := redis.NewScript(source)
	return func(ctx context.Context, key string, args ...any) ([]int64, error) {
		return script.Run(ctx, client, []string{key}, args...).Int64Slice()
	}
}

// instrumentTracing adds a span to each command of node except ping and log-in, without the command's arguments. Names
// of keys are pseudonyms, and values are properties of credentials. Neither belongs into a tracing system.
func instrumentTracing(node *redis.Client, tracer trace.TracerProvider) error {
	switch tracer.(type) {
	case nil, noop.TracerProvider, *noop.TracerProvider:
		return nil
	}
	return redisotel.InstrumentTracing(node,
		redisotel.WithTracerProvider(tracer),
		redisotel.WithDBStatement(false),
		redisotel.WithCallerEnabled(false),
		redisotel.WithDialFilter(true),
		redisotel.WithCommandFilter(func(cmd redis.Cmder) bool {
			return cmd.Name() == "ping" || redisotel.DefaultCommandFilter(cmd)
		}),
	)
}

// Up reports whether Redis has answered a command before, and no fault now keeps commands from Redis or from a needed
// node of a cluster.
func (c *Client) Up() bool { return c.answered.Load() && c.stopped() == nil }

// Reach returns nil if Redis answers a ping now. Reach is the check for readiness. While the Client sends no commands,
// Reach returns the fault that stopped them.
func (c *Client) Reach(ctx context.Context) error {
	if err := c.stopped(); err != nil {
		return err
	}
	return Commands(c).Ping(ctx).Err()
}

// stopped returns the reason why Redis, or a master of a cluster, gets no commands. The result is nil if all get
// commands.
func (c *Client) stopped() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, needed := range c.down {
		if needed {
			return fmt.Errorf("%w: %w", ErrDown, c.fault)
		}
	}
	return nil
}

// Close stops the probes and closes the connections. A second call does nothing.
func (c *Client) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return nil
	}
	c.cancel()
	err := c.connection.Close()
	c.probes.Wait()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
