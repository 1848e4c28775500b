package lists

import (
	"hash/maphash"
	"math/bits"
)

// idSet is a set of ids that holds only a hash of each id. A large set takes 9 to 14 bytes an id, which is far less
// than a map takes.
//
// In about one of 40 million sets of a million ids, two ids have the same hash, and the page lacks the second id. We
// accept that chance.
type idSet struct {
	seed  maphash.Seed
	parts [1 << partBits]part
}

// partBits is how many bits of a hash choose its part. A set has 128 parts, because a part is in memory twice while it
// grows.
const partBits = 7

// part is a hash table with open addressing. 0 marks a free slot.
type part struct {
	slots []uint64
	used  int
}

func newIDSet() *idSet { return &idSet{seed: maphash.MakeSeed()} }

// add puts id into the set and reports whether id is new.
func (s *idSet) add(id []byte) bool {
	h := maphash.Bytes(s.seed, id)
	return s.parts[h>>(64-partBits)].add(max(h<<partBits|h>>(64-partBits), 1))
}

func (p *part) add(h uint64) bool {
	if p.used*8 >= len(p.slots)*7 {
		p.grow()
	}
	if !p.put(h) {
		return false
	}
	p.used++
	return true
}

// put puts h into a free slot and reports whether h is new. The caller makes sure that a slot is free.
func (p *part) put(h uint64) bool {
	// The high word of a product spreads h over any number of slots (Lemire, "Fast Random Integer
	// Generation in an Interval").
	n := uint64(len(p.slots))
	at, _ := bits.Mul64(h, n)
	for ; p.slots[at] != 0; at++ {
		if p.slots[at] == h {
			return false
		}
		if at+1 == n {
			at = ^uint64(0) // wraps to 0
		}
	}
	p.slots[at] = h
	return true
}

func (p *part) grow() {
	old := p.slots
	p.slots = make([]uint64, max(64, len(old)*3/2))
	for _, h := range old {
		if h != 0 {
			p.put(h)
		}
	}
}
