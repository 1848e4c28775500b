package auth

import (
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// refusalWindow is the length of the windows in which refused keys are counted.
const refusalWindow = time.Second

// refusalCounter counts the refused keys of each client address. It bounds how many random keys from one address
// reach the stores. It counts in this process alone, so that it also works without Redis.
type refusalCounter struct {
	limit   int64 // in a window; 0: no limit
	windows *otter.Cache[string, *atomic.Int64]
}

// newRefusalCounter returns a counter that allows each address limit refused keys a second.
func newRefusalCounter(limit int) *refusalCounter {
	return &refusalCounter{
		limit: int64(limit) * int64(refusalWindow/time.Second),
		windows: otter.Must(&otter.Options[string, *atomic.Int64]{
			MaximumSize: 100_000, ExpiryCalculator: otter.ExpiryCreating[string, *atomic.Int64](refusalWindow),
		}),
	}
}

// over reports whether the address has used up its window. It does not count look-ups in flight.
func (c *refusalCounter) over(address string) bool {
	if c.limit <= 0 || address == "" {
		return false
	}
	n, ok := c.windows.GetIfPresent(address)
	return ok && n.Load() >= c.limit
}

// count counts a refused key of the address.
func (c *refusalCounter) count(address string) {
	if c.limit <= 0 || address == "" {
		return
	}
	n, ok := c.windows.GetIfPresent(address)
	if !ok {
		n, _ = c.windows.SetIfAbsent(address, new(atomic.Int64))
	}
	n.Add(1)
}
