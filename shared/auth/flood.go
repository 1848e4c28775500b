package auth

import (
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// floodWindow is the time over which refused keys are counted.
const floodWindow = time.Second

// flood counts the refused keys of each client address, so that random keys from one address do not reach the
// stores without bound. It counts in this process alone, so that it also works without Redis.
type flood struct {
	limit   int64 // in a window; 0: none
	windows *otter.Cache[string, *atomic.Int64]
}

// newFlood returns a flood that allows each address limit refused keys a second.
func newFlood(limit int) *flood {
	return &flood{
		limit: int64(limit) * int64(floodWindow/time.Second),
		windows: otter.Must(&otter.Options[string, *atomic.Int64]{
			MaximumSize: 100_000, ExpiryCalculator: otter.ExpiryCreating[string, *atomic.Int64](floodWindow),
		}),
	}
}

// over reports whether the address has used up its window. Look-ups in flight are not counted yet.
func (f *flood) over(address string) bool {
	if f.limit <= 0 || address == "" {
		return false
	}
	n, ok := f.windows.GetIfPresent(address)
	return ok && n.Load() >= f.limit
}

// count counts a refused key of the address.
func (f *flood) count(address string) {
	if f.limit <= 0 || address == "" {
		return
	}
	n, ok := f.windows.GetIfPresent(address)
	if !ok {
		n, _ = f.windows.SetIfAbsent(address, new(atomic.Int64))
	}
	n.Add(1)
}
