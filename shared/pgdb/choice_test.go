package pgdb

import (
	"testing"
	"time"
)

// server is a server as a choice meets it: how long a statement takes over one connection, alone and with
// seven others, and how often one comes through over all connections of a way.
type server struct{ alone, together time.Duration }

// run has the choice learn of n statements, and tells how many of them went alone.
func (s server) run(c *choice, now *time.Time, n int, took time.Duration) (alone int) {
	for range n {
		every := s.together
		if c.alone {
			every = s.alone
			alone++
		}
		*now = now.Add(every)
		c.learn(took+every, *now)
	}
	return alone
}

func TestChoice(t *testing.T) {
	works := server{alone: 75 * time.Microsecond, together: 50 * time.Microsecond}
	waits := server{alone: 250 * time.Microsecond, together: time.Millisecond}
	equal := server{alone: 100 * time.Microsecond, together: 102 * time.Microsecond}
	const many = 100_000
	c, now := &choice{few: 2, all: 8}, time.Unix(0, 0)
	if c.alone || c.room() != 2 {
		t.Error("statements do not go together at first")
	}
	if alone := works.run(c, &now, many, time.Millisecond); c.alone || alone > many/100 {
		t.Errorf("a server that works: %d of %d went alone, at last %t", alone, many, c.alone)
	}
	waits.run(c, &now, many, time.Millisecond)
	if !c.alone || c.room() != 8 {
		t.Error("a server that waits: they go together at last")
	}
	before := now
	if alone := waits.run(c, &now, many, time.Millisecond); alone < many*99/100 {
		t.Errorf("a server that waits: %d of %d went together", many-alone, many)
	}
	if s := now.Sub(before).Seconds(); s > many*waits.alone.Seconds()*1.05 {
		t.Errorf("trials take more than a twentieth of the time: %.1f s for %d statements", s, many)
	}
	works.run(c, &now, 4*many, time.Millisecond)
	if c.alone {
		t.Error("a server that works again: they go alone at last")
	}
	equal.run(c, &now, 4*many, time.Millisecond)
	if c.alone {
		t.Error("what makes no difference changed the way")
	}
}

// Where there is no more to do, one way and the other, it is chosen by how long a statement took.
func TestChoiceOfTheSooner(t *testing.T) {
	c, now := &choice{few: 2, all: 8}, time.Unix(0, 0)
	for range 100_000 {
		took := 4 * time.Millisecond
		if c.alone {
			took = 2 * time.Millisecond
		}
		now = now.Add(time.Millisecond)
		c.learn(took, now)
	}
	if !c.alone {
		t.Error("they go the way that takes longer")
	}
}
