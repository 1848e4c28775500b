package auth

import "sync/atomic"

// generations counts the changes of each shard of the key space. What was read is worth something
// only while the count that was taken before the reading began is still current: so a change during
// a load makes the load's result worthless, where a deletion would come too early to hit it.
type generations [256]atomic.Uint64

func (g *generations) current(shard byte) uint64 { return g[shard].Load() }

func (g *generations) bump(shard byte) { g[shard].Add(1) }
