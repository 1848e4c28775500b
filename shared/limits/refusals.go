package limits

import (
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
)

// RefusedPerSecond is how many refused keys one client network may send a process in a second.
const RefusedPerSecond = 50

const (
	// window is the length of the windows in which refused keys are counted.
	window = time.Second

	// maxNetworks bounds how many networks have a count of refused keys. Over this bound, the cache drops the networks
	// that are looked up least often.
	maxNetworks = 20_000
)

// Refusals counts the refused keys of each client network. The counts are those of this process alone, so that they
// need no Redis. A Refusals may be used from several goroutines.
type Refusals struct {
	limit    int // in a window; 0: no limit
	networks networks
}

// networks is the cache of counts by network. The interface hides otter's Cache type. The compiler emits the methods of
// Cache in each package that reaches the type.
type networks interface {
	GetIfPresent(network string) (*refused, bool)
	SetIfAbsent(network string, r *refused) (*refused, bool)
}

// refused is the count of one network's refused keys in the window that began at began.
type refused struct {
	mu    sync.Mutex
	began time.Time
	count int
}

// NewRefusals returns a Refusals that allows each network limit refused keys a second. A limit of 0 allows any number.
func NewRefusals(limit int) *Refusals {
	return &Refusals{limit, otter.Must(&otter.Options[string, *refused]{MaximumSize: maxNetworks})}
}

// Over reports whether the network has sent as many refused keys in the current window as the limit allows. Keys whose
// comparison is in flight do not count yet. The empty network has no limit.
func (c *Refusals) Over(network string) bool {
	if c.limit <= 0 || network == "" {
		return false
	}
	n, ok := c.networks.GetIfPresent(network)
	if !ok {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count >= c.limit && time.Since(n.began) < window
}

// Count counts one refused key of the network in the current window. The empty network is not counted.
func (c *Refusals) Count(network string) {
	if c.limit <= 0 || network == "" {
		return
	}
	n, ok := c.networks.GetIfPresent(network)
	if !ok {
		n, _ = c.networks.SetIfAbsent(network, new(refused))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); now.Sub(n.began) >= window {
		n.began, n.count = now, 0
	}
	n.count++
}
