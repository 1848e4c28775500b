package auth

import "sync/atomic"

// Tally counts how a layer of key look-ups answered. Its zero value is ready; it may be used from many
// goroutines.
type Tally struct {
	hits, misses, faults atomic.Int64
}

// Hit counts an answer: a key's record.
func (t *Tally) Hit() { t.hits.Add(1) }

// Miss counts a look-up that the layer knew nothing of.
func (t *Tally) Miss() { t.misses.Add(1) }

// Fault counts a look-up that failed.
func (t *Tally) Fault() { t.faults.Add(1) }

// Counts returns what was counted so far.
func (t *Tally) Counts() (hits, misses, faults int64) {
	return t.hits.Load(), t.misses.Load(), t.faults.Load()
}
