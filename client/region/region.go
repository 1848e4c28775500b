// Package region caches the zones of projects for services that need the local time of a project. It computes offsets
// itself, with the tz database in the program: it asks nothing for a change of daylight saving, nor for another time.
//
//	c, err := client.New("http://lectern-region.lectern", client.WithAPIKeyFile("/run/lectern/internal-key"))
//	if err != nil {
//		return err
//	}
//	regions := region.New(c, region.Options{})
//	where, err := regions.Lookup(ctx, projectID) // where.Name, where.OffsetMinutes
//
// It promises:
//
//   - While the region service answers, a new region of a project is served at the latest after twice [Options.Fresh] and the
//     REGION_CACHE_TTL of the service.
//   - Concurrent look-ups of the same project share one request.
//   - While it cannot answer, a known project is served for [Options.Keep]. Once a request has failed, no
//     look-up of it waits, and one request at a time asks whether the service is back.
package region

import (
	"cmp"
	"container/list"
	"context"
	"sync"
	"time"
	_ "time/tzdata" // images may have no tz database

	"github.com/lectern-dev/lectern/client"
)

// Options configure a Cache. A field that is zero has its default.
type Options struct {
	// Fresh is the age up to which a zone is served without a request. An older one is served too, and renewed in the
	// background, up to twice that age. Then a look-up waits for a new one, unless the last request failed. Default: 30 s.
	Fresh time.Duration
	// Keep is the age up to which a zone is served while the service does not answer. Default: 24 h.
	Keep time.Duration
	// Timeout bounds how long a look-up waits for the service, with all retries. Default: 2 s.
	Timeout time.Duration
	// Size is how many projects are cached. Default: 10,000.
	Size int
	// Failed, if set, is called with each failure of the service, even if the look-up is answered from the cache.
	Failed func(projectID string, err error)
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// pause is how long the service is left alone after a failure. Only unknown projects are looked up meanwhile. After it, one
// look-up of a known project asks in the background.
const pause = 5 * time.Second

// Cache looks regions up. It is safe for concurrent use; a process needs only one.
type Cache struct {
	client  *client.Client
	options Options

	mu          sync.Mutex
	known       map[string]*list.Element // of *entry
	used        list.List                // of *entry, the last used first
	requests    map[string]*request      // in flight
	zones       map[string]*time.Location
	pausedUntil time.Time // zero if the service answered the last request
}

// entry is a cached zone. It does not change.
type entry struct {
	projectID string
	zone      *time.Location
	source    client.RegionSource
	asked     time.Time
}

// request is a request in flight. entry and err are valid once done is closed.
type request struct {
	done  chan struct{}
	entry *entry
	err   error
}

// New returns a cache. The key of c is one of the service's INTERNAL_API_KEYS.
func New(c *client.Client, o Options) *Cache {
	o.Fresh = cmp.Or(o.Fresh, 30*time.Second)
	o.Keep = max(cmp.Or(o.Keep, 24*time.Hour), 2*o.Fresh)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.Size = cmp.Or(o.Size, 10_000)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Cache{
		client: c, options: o,
		known: map[string]*list.Element{}, requests: map[string]*request{}, zones: map[string]*time.Location{},
	}
}

// Lookup returns the region of a project and its offset now. A project without a region, and an unknown one, have the
// [client.DefaultRegion]. The error is a [*client.Error], the connection's, or ctx's own.
func (c *Cache) Lookup(ctx context.Context, projectID string) (client.Region, error) {
	return c.LookupAt(ctx, projectID, c.options.Now())
}

// LookupAt returns the region of a project and its offset at a time, past or future. It makes no request if the zone of
// the project is cached.
func (c *Cache) LookupAt(ctx context.Context, projectID string, at time.Time) (client.Region, error) {
	found, r := c.find(ctx, projectID)
	if r != nil {
		select {
		case <-r.done:
		case <-ctx.Done():
			return client.Region{}, context.Cause(ctx)
		}
		if r.err != nil && found == nil {
			return client.Region{}, r.err
		}
		found = cmp.Or(r.entry, found)
	}
	_, seconds := at.In(found.zone).Zone()
	return client.Region{Name: found.zone.String(), OffsetMinutes: seconds / 60, Source: found.source}, nil
}

// find returns the cached entry of a project, nil for none, and the request to wait for, nil if the entry will do.
func (c *Cache) find(ctx context.Context, projectID string) (*entry, *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.options.Now()
	var found *entry
	var age time.Duration
	failing := !c.pausedUntil.IsZero()
	if element, ok := c.known[projectID]; ok {
		c.used.MoveToFront(element)
		found = element.Value.(*entry)
		age = now.Sub(found.asked)
		switch {
		case age >= c.options.Keep:
			found = nil
		case age < c.options.Fresh, failing && (now.Before(c.pausedUntil) || len(c.requests) > 0):
			return found, nil
		}
	}
	r, ok := c.requests[projectID]
	if !ok {
		r = &request{done: make(chan struct{})}
		c.requests[projectID] = r
		// Others may wait for the answer, so it does not end with this caller, nor write to the caller's request id.
		go c.ask(client.StoreRequestID(context.WithoutCancel(ctx), new(string)), projectID, r)
	}
	if found != nil && (failing || age < 2*c.options.Fresh) {
		return found, nil
	}
	return found, r
}

// ask asks the service, and stores its answer or begins a pause.
func (c *Cache) ask(ctx context.Context, projectID string, r *request) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	asked := c.options.Now()
	region, err := c.client.Region(ctx, projectID, time.Time{})
	if err = c.settle(r, projectID, region, asked, err); err != nil && c.options.Failed != nil {
		c.options.Failed(projectID, err)
	}
	close(r.done)
}

// settle ends a request with the service's answer.
func (c *Cache) settle(r *request, projectID string, region client.Region, asked time.Time, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests, projectID)
	c.pausedUntil = time.Time{}
	if err != nil && client.Code(err) != client.CodeInvalidBody { // which is the project's fault
		c.pausedUntil = c.options.Now().Add(pause)
	}
	zone := c.zones[region.Name]
	if err == nil && zone == nil {
		if zone, err = time.LoadLocation(region.Name); err == nil {
			c.zones[region.Name] = zone
		}
	}
	if err != nil {
		r.err = err
		return err
	}
	r.entry = &entry{projectID, zone, region.Source, asked}
	if old, ok := c.known[projectID]; ok {
		old.Value = r.entry
		return nil
	}
	c.known[projectID] = c.used.PushFront(r.entry)
	if len(c.known) > c.options.Size {
		oldest := c.used.Remove(c.used.Back()).(*entry)
		delete(c.known, oldest.projectID)
	}
	return nil
}
