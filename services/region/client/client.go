// Package client asks the region service, from inside the cluster, which region a project is in and how
// far that is from UTC. A caller writes:
//
//	regions, err := client.New("http://region:8080", internalKey, client.Options{})
//	if err != nil {
//		return err
//	}
//	defer regions.Close()
//	where, err := regions.Lookup(ctx, projectID) // where.Name, where.OffsetMinutes
//
// What it promises:
//
//   - A look-up that is warm costs no I/O. One that was asked for [Options.Fresh] ago or longer is renewed
//     behind the caller; one older than [Options.Stale] is asked for again, and the caller waits.
//   - Many who look the same project up at the same time cost one request.
//   - A request that can not connect, loses its connection or is answered 503 is repeated, after a random
//     while, within [Options.Timeout]. Nothing else is repeated.
//   - While the service is out of reach, a region not older than Stale is still given.
//
// It needs nothing of the service but its address and one of its INTERNAL_API_KEYS.
package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Region is where a project is.
type Region struct {
	// Name is the zone of the tz database: "America/Los_Angeles".
	Name string
	// OffsetMinutes is how many minutes that is east of UTC, daylight saving counted.
	OffsetMinutes int
}

// Options say how a Client behaves. The zero value is fit for use.
type Options struct {
	// Timeout bounds a look-up, with all its repetitions. Default: 2 s.
	Timeout time.Duration

	// Fresh is how long an answer is given out without asking again. Default: 10 s.
	Fresh time.Duration

	// Stale is how old an answer may be that is given out while a newer one is asked for. Offsets change
	// with daylight saving, so this bounds how late a change of it is seen. Default: 1 min.
	Stale time.Duration

	// Size is how many projects are remembered. Default: 10,000, some 2 MB when full.
	Size int

	// HTTP makes the requests. Default: a client of its own that keeps connections.
	HTTP *http.Client

	// Tracer makes a span of each request to the service, which goes on with its trace. Default: no spans.
	Tracer trace.TracerProvider

	// Now is the clock. Default: time.Now.
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
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider()
	}
	if o.Now == nil {
		o.Now = time.Now
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

// rest is how long a project that could not be renewed is left alone, while its last answer is good.
const rest = time.Second

// Client looks regions up. It may be used by several goroutines; one for a process is enough.
type Client struct {
	o      Options
	url    string
	key    string
	http   *http.Client
	own    *http.Transport // nil when the caller brought its HTTP client
	tracer trace.Tracer
	pass   propagation.TraceContext

	memory memory

	mu      sync.Mutex
	flights map[string]*flight
	closed  bool
	ctx     context.Context // of the requests; ends with Close
	cancel  context.CancelFunc
	behind  sync.WaitGroup
}

// flight is one request that any number of callers wait for. What it brought may be read when done is
// closed.
type flight struct {
	done   chan struct{}
	region Region
	err    error
}

// New returns a Client of the region service at baseURL, such as "http://region:8080". key is one of the
// service's INTERNAL_API_KEYS. Nothing is asked yet. The caller closes the Client.
func New(baseURL, key string, o Options) (*Client, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("region client: the address is not like http://region:8080")
	}
	if key == "" {
		return nil, errors.New("region client: no key given")
	}
	c := &Client{
		o: o, url: strings.TrimSuffix(u.String(), "/") + "/api/projects/region", key: key, http: o.HTTP,
		tracer:  o.Tracer.Tracer("github.com/lectern-dev/lectern/services/region/client"),
		memory:  memory{size: o.Size, byProject: map[string]*memo{}},
		flights: map[string]*flight{},
	}
	if c.http == nil {
		c.own = &http.Transport{
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: o.Timeout,
		}
		c.http = &http.Client{Transport: c.own, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Close ends what is under way behind callers, and the Client's connections. A look-up afterwards fails
// with [ErrClosed].
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.behind.Wait()
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// Lookup returns the region of a project and its offset now. A project without a region, and one that
// the service does not know, is in America/Los_Angeles. The error is [ErrUnauthorized], [ErrUnavailable],
// [ErrClosed], ctx's own, or an [*Error] with what the service answered.
func (c *Client) Lookup(ctx context.Context, projectID string) (Region, error) {
	if known, ok := c.memory.get(projectID); ok {
		now, said := c.o.Now(), known.answer.Load()
		switch age := now.Sub(said.asked); {
		case age < c.o.Fresh:
			return said.region, nil
		case age < c.o.Stale:
			if now.Sub(time.Unix(0, known.failed.Load())) > rest {
				c.join(ctx, projectID)
			}
			return said.region, nil
		}
	}
	f := c.join(ctx, projectID)
	select {
	case <-f.done:
		return f.region, f.err
	case <-ctx.Done():
		return Region{}, ctx.Err()
	}
}

// LookupAt returns the region of a project and its offset at a moment. It always asks the service.
func (c *Client) LookupAt(ctx context.Context, projectID string, at time.Time) (Region, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	if c.ctx.Err() != nil {
		return Region{}, ErrClosed
	}
	return c.ask(ctx, projectID, &at)
}

// join returns the request for a project under way, or begins one. It goes on when the caller who began
// it leaves: others may wait for it.
func (c *Client) join(ctx context.Context, projectID string) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.flights[projectID]; ok {
		return f
	}
	f := &flight{done: make(chan struct{})}
	if c.closed {
		f.err = ErrClosed
		close(f.done)
		return f
	}
	projectID = strings.Clone(projectID) // it may be part of something larger
	c.flights[projectID] = f
	c.behind.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.Timeout)
		defer cancel()
		defer context.AfterFunc(c.ctx, cancel)()
		asked := c.o.Now()
		f.region, f.err = c.ask(ctx, projectID, nil)
		if f.err == nil {
			c.memory.put(projectID, &answer{f.region, asked})
		} else if known, ok := c.memory.get(projectID); ok {
			known.failed.Store(c.o.Now().UnixNano())
		}
		c.mu.Lock()
		delete(c.flights, projectID)
		c.mu.Unlock()
		close(f.done)
	})
	return f
}
