package pgdb

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errHangs is the cause of a 503 for a project whose part of the database does not answer.
var errHangs = errors.New("the part of the database that has this project does not answer")

// errCrowded is the cause of a 503 when too many requests for that part are under way.
var errCrowded = errors.New("the part of the database that has this project is busy")

// cell is a part of a distributed database that answers or fails as one, as a ship's cell floods alone:
// a worker, with those that replicate it. It bounds how many connections of a pool are taken by visits
// to it, and takes none while it hangs.
type cell struct {
	id int32

	mu      sync.Mutex
	most    int // visits at a time
	visits  map[*visit]struct{}
	waiting time.Time     // since when there is something to answer and nothing was; zero when there is not
	project string        // one of those it has
	hangs   bool          // nobody is let in
	freed   chan struct{} // closed when a visit ends or the cell answers again
}

// visit is a statement or transaction under way in a cell.
type visit struct {
	cell   *cell
	cancel context.CancelFunc
	cut    bool // ended from outside, because the cell hangs; under cell.mu
}

func newCell(id int32) *cell {
	return &cell{id: id, visits: map[*visit]struct{}{}, freed: make(chan struct{})}
}

// allow sets how many visits there may be at a time.
func (c *cell) allow(most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = most
}

// enter begins a visit, when need be after a wait of at most patience. Who finds the cell full and nobody
// coming out for as long does not wait at all. The context ends with the visit.
func (c *cell) enter(ctx context.Context, project string, patience time.Duration) (context.Context, *visit, error) {
	var timer *time.Timer
	for {
		c.mu.Lock()
		now := time.Now()
		if c.hangs {
			c.mu.Unlock()
			return nil, nil, errHangs
		}
		if len(c.visits) < c.most {
			v := &visit{cell: c}
			ctx, v.cancel = context.WithCancel(ctx)
			c.visits[v] = struct{}{}
			c.project = project
			if c.waiting.IsZero() {
				c.waiting = now
			}
			c.mu.Unlock()
			return ctx, v, nil
		}
		quiet, freed := c.quiet(now), c.freed
		c.mu.Unlock()
		if quiet > patience {
			return nil, nil, errCrowded
		}
		if timer == nil {
			timer = time.NewTimer(patience)
			defer timer.Stop()
		}
		select {
		case <-freed:
		case <-timer.C:
			return nil, nil, errCrowded
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// quiet is for how long the cell has not answered what it was asked. The caller holds c.mu.
func (c *cell) quiet(now time.Time) time.Duration {
	if c.waiting.IsZero() {
		return 0
	}
	return now.Sub(c.waiting)
}

// answered notes a sign of life. The caller holds c.mu.
func (c *cell) answered() {
	c.waiting = time.Time{}
	if len(c.visits) > 0 {
		c.waiting = time.Now()
	}
}

// meaning gives what the fault err of a visit means.
func (v *visit) meaning(err error) error {
	v.cell.mu.Lock()
	defer v.cell.mu.Unlock()
	if v.cut {
		return errors.Join(errHangs, err)
	}
	return err
}

// leave ends a visit; answered says whether the cell showed life in it.
func (v *visit) leave(answered bool) {
	v.cancel()
	c := v.cell
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.visits, v)
	if answered {
		c.answered()
	}
	c.wake()
}

// wake has those who wait look again. The caller holds c.mu.
func (c *cell) wake() {
	close(c.freed)
	c.freed = make(chan struct{})
}

// suspect tells whether the cell has not answered for so long, or is known to hang, and gives a project
// that it has, to ask for.
func (c *cell) suspect(silence time.Duration) (project string, suspected bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.project, c.hangs || c.quiet(time.Now()) >= silence
}

// judge says whether the cell hangs. When it begins to, what is under way in it is ended.
func (c *cell) judge(hangs bool) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = c.hangs != hangs
	c.hangs = hangs
	if hangs {
		for v := range c.visits {
			v.cut = true
			v.cancel()
		}
	} else {
		c.answered()
	}
	c.wake()
	return changed
}
