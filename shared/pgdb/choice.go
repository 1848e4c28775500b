package pgdb

import "time"

// choice is how brief statements go: many together over few connections, as many as this process can keep
// busy, or each alone over one of all. The first is cheaper for a server that works, and dearer for one that
// waits, for its disk or for locks: the more of those wait at a time, the sooner all are through. And that may be
// another one an hour later.
//
// So once in a while both are tried in turn, for some dozen statements each, and the one is kept by which more
// came through, or, where there was no more to do, by which they did sooner. They go together at first.
type choice struct {
	few, all int // connections, one way and the other

	alone bool

	trial   *trial    // nil between trials
	next    time.Time // no trial before
	between time.Duration
}

// trial compares the two ways.
type trial struct {
	before bool      // the way that went before it
	phases int       // still to come, with this one
	left   int       // statements of this one
	begun  time.Time // this one, when those that came the other way were through
	ways   [2]measured
}

// measured is what a trial knows of a way.
type measured struct {
	lasted time.Duration // its phases
	took   time.Duration // its statements, from when they came, together
}

const (
	trialPhases     = 4
	phaseStatements = 96
	strayStatements = 32 // of a phase: they may have come before it

	// Times between trials; they grow while nothing changes.
	shortest = time.Second
	longest  = 16 * time.Second
)

// room is how many connections there are for brief statements.
func (c *choice) room() int {
	if c.alone {
		return c.all
	}
	return c.few
}

// learn notes that a statement was answered, while there was no room for another one.
func (c *choice) learn(took time.Duration, now time.Time) {
	t := c.trial
	if t == nil {
		if now.After(c.next) {
			c.trial = &trial{before: c.alone, phases: trialPhases}
			c.turn()
		}
		return
	}
	way := &t.ways[index(c.alone)]
	switch t.left--; {
	case t.left > phaseStatements-strayStatements:
		return
	case t.left == phaseStatements-strayStatements:
		t.begun = now
		return
	}
	way.took += took
	if t.left > 0 {
		return
	}
	way.lasted += now.Sub(t.begun)
	if t.phases--; t.phases > 0 {
		c.turn()
		return
	}
	c.trial = nil
	if t.ways[index(!t.before)].better(t.ways[index(t.before)]) {
		c.alone, c.between = !t.before, shortest
	} else {
		c.alone, c.between = t.before, max(shortest, min(2*c.between, longest))
	}
	c.next = now.Add(c.between)
}

// better tells whether a way is so much better than the one that was kept that it is no accident.
func (m measured) better(kept measured) bool {
	switch margin := kept.lasted / 16; {
	case m.lasted < kept.lasted-margin:
		return true
	case m.lasted > kept.lasted+margin:
		return false
	}
	return m.took < kept.took-kept.took/16
}

// turn begins a trial's next phase.
func (c *choice) turn() {
	c.alone = !c.alone
	c.trial.left = phaseStatements
}

// index is where a trial keeps what it knows of a way.
func index(alone bool) int {
	if alone {
		return 1
	}
	return 0
}
