//go:build race

package rawtcp

import "sync/atomic"

// order tells the race detector, as package syscall does, that what is written comes before what is read behind it.
var order atomic.Uint64

func sending()  { order.Add(1) }
func received() { order.Load() }
