// Package client asks the region service, from inside the cluster, for the region of a project and its offset from
// UTC. A caller writes:
//
//	regions, err := client.New("http://lectern-region.lectern", internalKey, client.Options{})
//	if err != nil {
//		return err
//	}
//	defer regions.Close()
//	where, err := regions.Lookup(ctx, projectID) // where.Name, where.OffsetMinutes
//
// It promises:
//
//   - An answer younger than [Options.Fresh] is served from memory. An older one is served too, and renewed
//     in the background. After [Options.Stale] the caller waits for a new one.
//   - Concurrent look-ups of the same project share one request.
//   - A request that cannot connect, loses its connection or is answered 503 is retried after a random
//     pause, within [Options.Timeout]. No other request is retried.
//   - While the service cannot be reached, an answer younger than Stale is served.
//
// It needs the address of the service and one of its INTERNAL_API_KEYS.
package client

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/maypok86/otter/v2"
	"go.opentelemetry.io/otel/trace"
)

// Region is the region of a project.
type Region struct {
	// Name is the zone of the tz database: "America/Los_Angeles".
	Name string
	// OffsetMinutes is the zone's offset in minutes east of UTC, including daylight saving.
	OffsetMinutes int
}

// Options configure a Client. The zero value is ready to use.
type Options struct {
	// Timeout bounds a look-up with all its retries. Default: 2 s.
	Timeout time.Duration

	// Fresh is the age from which an answer is renewed in the background. Default: 10 s.
	Fresh time.Duration

	// Stale is the greatest age of an answer that is served. It bounds how late a caller sees a change of
	// daylight saving. Default: 1 min.
	Stale time.Duration

	// Size is the number of projects that are cached. Default: 10,000, some 2 MB when full.
	Size int

	// HTTP makes the requests. Default: a client of its own that keeps connections.
	HTTP *http.Client

	// Tracer records a span for each request, which propagates its trace to the service. Default: no spans.
	Tracer trace.TracerProvider

	// Now is the clock of the cache. Default: time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&o.Timeout, 2*time.Second)
	set(&o.Fresh, 10*time.Second)
	set(&o.Stale, time.Minute)
	if o.Size == 0 {
		o.Size = 10_000
	}
	return o
}

func (o Options) validate() error {
	switch {
	case o.Timeout < 0, o.Fresh < 0, o.Stale < o.Fresh, o.Size < 0:
		return fmt.Errorf("region client: Timeout %v, Fresh %v, Stale %v, Size %d: none may be negative, nor Stale less than Fresh",
			o.Timeout, o.Fresh, o.Stale, o.Size)
	}
	return nil
}

// retryAfter is the pause after an answer could not be renewed in the background.
const retryAfter = time.Second

// Client looks regions up. It is safe for concurrent use; a process needs only one.
type Client struct {
	*endpoint
	timeout time.Duration
	answers *otter.Cache[string, Region]
	load    otter.Loader[string, Region]

	closed context.Context // done after Close
	cancel context.CancelFunc
}

// New returns a Client of the region service at baseURL, such as "http://lectern-region.lectern". key is one of the
// service's INTERNAL_API_KEYS. New makes no request. The caller closes the Client.
func New(baseURL, key string, o Options) (*Client, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	e, err := newEndpoint(baseURL, "/api/projects/region", key, o.HTTP, o.Tracer)
	if err != nil {
		return nil, err
	}
	cache := &otter.Options[string, Region]{
		MaximumSize:       o.Size,
		ExpiryCalculator:  otter.ExpiryWriting[string, Region](o.Stale),
		RefreshCalculator: renewal{otter.RefreshWriting[string, Region](o.Fresh)},
		Logger:            &otter.NoopLogger{}, // waiting callers get the error
	}
	if o.Now != nil {
		cache.Clock = clock(o.Now)
	}
	answers, err := otter.New(cache)
	if err != nil {
		return nil, fmt.Errorf("region client: %w", err)
	}
	c := &Client{endpoint: e, timeout: o.Timeout, answers: answers}
	c.load = otter.LoaderFunc[string, Region](func(ctx context.Context, projectID string) (Region, error) {
		return c.ask(ctx, projectID, nil)
	})
	c.closed, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// renewal adds a pause after a failure to the time of the next renewal.
type renewal struct {
	otter.RefreshCalculator[string, Region]
}

func (renewal) RefreshAfterReloadFailure(otter.Entry[string, Region], error) time.Duration {
	return retryAfter
}

// clock is a time source of the cache. It does not tick: expired answers are dropped as others are added.
type clock func() time.Time

func (c clock) NowNano() int64 { return c().UnixNano() }

func (clock) Tick(time.Duration) <-chan time.Time { return nil }

// Close cancels the requests in flight and closes the connections. Every later look-up fails with
// [ErrClosed].
func (c *Client) Close() {
	c.cancel()
	c.answers.StopAllGoroutines()
	c.endpoint.close()
}

// Lookup returns the region of a project and its offset now. A project without a region, and one that
// the service does not know, is in America/Los_Angeles. The error is [ErrUnauthorized], [ErrUnavailable],
// [ErrClosed], ctx's own, or an [*Error] with the answer of the service.
func (c *Client) Lookup(ctx context.Context, projectID string) (Region, error) {
	if c.closed.Err() != nil {
		return Region{}, ErrClosed
	}
	if _, ok := c.answers.GetEntryQuietly(projectID); ok {
		return c.answers.Get(ctx, projectID, c.load)
	}
	// Refresh continues when this caller gives up: others may wait for the same answer.
	select {
	case loaded := <-c.answers.Refresh(ctx, projectID, c.load):
		return loaded.Value, loaded.Err
	case <-ctx.Done():
		return Region{}, ctx.Err()
	}
}

// LookupAt returns the region of a project and its offset at a moment. It always asks the service.
func (c *Client) LookupAt(ctx context.Context, projectID string, at time.Time) (Region, error) {
	return c.ask(ctx, projectID, &at)
}
