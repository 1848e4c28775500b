package trustedkeys

import (
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
)

// RefusedPerSecond is how many refused keys one client network may send a second at one process.
const RefusedPerSecond = 50

const (
	// window is the length of the windows in which refused keys are counted.
	window = time.Second

	// maxNetworks bounds the networks whose refused keys are counted. Those that sent the fewest are forgotten.
	maxNetworks = 20_000
)

// Refusals counts the refused keys of each client network. It counts in this process alone, so that it also works without
// Redis. It may be used from several goroutines.
type Refusals struct {
	limit    int // in a window; 0: no limit
	networks networks
}

// networks is a cache of counts by network. The interface hides otter's Cache, because the compiler emits its methods in
// each package that reaches its type.
type networks interface {
	GetIfPresent(network string) (*refused, bool)
	SetIfAbsent(network string, r *refused) (*refused, bool)
}

// refused counts in one window.
type refused struct {
	mu    sync.Mutex
	began time.Time
	count int
}

// NewRefusals returns a counter that allows each network limit refused keys a second. 0: any number.
func NewRefusals(limit int) *Refusals {
	return &Refusals{limit, otter.Must(&otter.Options[string, *refused]{MaximumSize: maxNetworks})}
}

// Over reports whether the network has used up its window. It does not count comparisons in flight. The empty network has
// no limit.
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

// Count counts a refused key of the network.
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
