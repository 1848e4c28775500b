// Package region caches the time zones of projects, for services that need the local time of a project. The package
// computes offsets with the tz database in the program. So a change of daylight saving time, or another point in time,
// needs no request.
//
//	c, err := client.New("http://lectern-region.lectern", client.WithAPIKeyFile("/run/lectern/internal-key"))
//	if err != nil {
//		return err
//	}
//	regions := region.New(c, region.Options{})
//	where, err := regions.Lookup(ctx, projectID) // where.Name, where.OffsetMinutes
//
// A [Cache] promises:
//
//   - While the region service answers, a [Cache] returns a project's new region at the latest after twice
//     [Options.Fresh] plus the REGION_CACHE_TTL of the service.
//   - Concurrent look-ups of the same project share one request.
//   - While the region service cannot answer, a [Cache] returns the last zone of a project until that zone has the age
//     [Options.Keep]. Once a request has failed, a look-up with such a zone does not wait.
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

// Options are how long a [Cache] uses a zone, how long a look-up waits, and how many projects are cached. A field that
// is zero has its default.
type Options struct {
	// Fresh is the age up to which the cache returns a zone without a request. From Fresh to twice Fresh, the cache
	// returns the zone and may renew it in the background. After that, a look-up waits for a new zone, unless the last
	// request failed. Default: 30 s.
	Fresh time.Duration
	// Keep is the age up to which the cache returns a zone while the service does not answer. A Keep below twice Fresh
	// becomes twice Fresh. Default: 24 h.
	Keep time.Duration
	// Timeout is how long a look-up waits for the service at most, including all retries. Default: 2 s.
	Timeout time.Duration
	// Size is how many projects are cached. A further project replaces the least recently used. Default: 10,000.
	Size int
	// Failed, if set, is called after a request to the service that returned no usable zone, even if the cache answers
	// the look-up. Failed must be safe for concurrent use, and look-ups may wait for its end.
	Failed func(projectID string, err error)
	// Now returns the current time, for tests. Default: time.Now.
	Now func() time.Time
}

// pause is how long the cache sends no request for projects with a usable zone after the service failed. After the
// pause, one look-up of such a project starts a request in the background.
const pause = 5 * time.Second

// Cache looks up the regions of projects at the region service, and keeps their time zones in memory. A Cache is safe
// for concurrent use; a process needs only one.
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

// entry is the cached zone of a project, with the time of the request. An entry does not change.
type entry struct {
	projectID string
	zone      *time.Location
	source    client.RegionSource
	asked     time.Time
}

// request is a request in flight to the region service, which several look-ups may wait for. Read entry and err after
// done is closed.
type request struct {
	done  chan struct{}
	entry *entry
	err   error
}

// New returns an empty cache that sends its requests by c. The key of c must be one of the service's
// INTERNAL_API_KEYS.
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

// Lookup returns the region of a project and its offset now. For a project without a region, and for an unknown
// project, Lookup returns the [client.DefaultRegion]. Lookup returns an error if the cache has no usable zone and the
// service returns none, or if ctx ends during the wait.
func (c *Cache) Lookup(ctx context.Context, projectID string) (client.Region, error) {
	return c.LookupAt(ctx, projectID, c.options.Now())
}

// LookupAt returns the region of a project and its offset at a time, past or future. LookupAt makes no request if the
// project's zone is cached and fresh. The errors are those of [Cache.Lookup].
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

// find returns the cached entry of a project, or nil if there is none younger than Options.Keep. If a request for the
// project is due and none is in flight, find starts one. If the look-up must wait for the request, find also returns
// the request, otherwise nil.
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
		// Other look-ups may wait for the same answer. So the request does not end with this caller's context, and
		// does not write to the caller's request id.
		go c.ask(client.StoreRequestID(context.WithoutCancel(ctx), new(string)), projectID, r)
	}
	if found != nil && (failing || age < 2*c.options.Fresh) {
		return found, nil
	}
	return found, r
}

// ask requests the region of a project from the service, and passes the answer to settle. ask then reports a failure to
// Options.Failed, and wakes the look-ups that wait for r.
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

// settle stores the outcome of a request in r and in the cache. After a failure of the service, settle begins a pause.
// settle returns err, or an error if the program does not know the zone.
func (c *Cache) settle(r *request, projectID string, region client.Region, asked time.Time, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests, projectID)
	c.pausedUntil = time.Time{}
	if err != nil && client.Code(err) != client.CodeInvalidBody { // that code means a fault of the project's id, not of the service
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
