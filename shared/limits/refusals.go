package limits

import (
	"time"

	"github.com/lectern-dev/lectern/shared/apierr"
)

// RefusedPerSecond is how many refused keys one client network may send a process in a second.
const RefusedPerSecond = 50

// maxNetworks bounds how many networks have a count of refused keys.
const maxNetworks = 20_000

// Refusals limits the refused keys of each client network. The counts are those of this process alone, so that they
// need no Redis. A Refusals may be used from several goroutines.
type Refusals struct{ networks cache[tokens] }

// NewRefusals returns a Refusals that allows each network RefusedPerSecond.
func NewRefusals() *Refusals { return &Refusals{newCache[tokens](maxNetworks)} }

var refusedRate = Rate{PerSecond: RefusedPerSecond, Burst: RefusedPerSecond}

// Check returns the apierr RateLimited if the network has sent as many refused keys as the rate allows, and nil otherwise.
// Keys whose comparison is in flight do not count yet. The empty network has no limit.
func (r *Refusals) Check(network string) error {
	t, ok := r.networks.GetIfPresent(network)
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, lacks := t.next(time.Now(), refusedRate); lacks <= 0 {
		return nil
	}
	return apierr.New(apierr.RateLimited, "Too many refused keys came from this address. Try again after the time that Retry-After gives.").After(time.Second)
}

// Count counts one refused key of the network, even over the rate: so comparisons that were in flight together count, too.
// After at most a second, the network may send another key. The empty network is not counted.
func (r *Refusals) Count(network string) {
	if network == "" {
		return
	}
	t := of(r.networks, network)
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if full, lacks := t.next(now, refusedRate); lacks <= time.Second {
		t.full = full
	}
}

// Refuse counts one refused key of the network. The result is the error to answer: why, which may be nil, or RateLimited if
// the network was over its limit before.
func (r *Refusals) Refuse(network string, why error) error {
	if err := r.Check(network); err != nil {
		return err
	}
	r.Count(network)
	return why
}
