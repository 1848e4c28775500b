package pgdb

import (
	"context"
	"errors"
	"log/slog"
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
	id  int32
	log *slog.Logger // hears of each change of its condition

	mu        sync.Mutex
	node      string // where it is reached, for an operator to know it by
	most      int    // visits at a time
	visits    map[*visit]struct{}
	waiting   time.Time     // since when there is something to answer and nothing was; zero when there is not
	project   string        // one of those it has
	freed     chan struct{} // closed when a visit ends or the cell answers again
	condition condition
	since     time.Time // of the condition
	doubted   bool      // somebody was told that it is out of reach, and nobody has looked
	examined  time.Time // when its condition was last judged
	answered  time.Time // when it, or the database for it, last answered
	served    time.Time // when a statement last succeeded
}

// condition is how a cell does.
type condition string

const (
	serving condition = "serving"

	// down: the database can not reach it, and says so at once. Who asks for it is let in, and told.
	down condition = "down"

	// hanging: it does not answer. Nobody is let in.
	hanging condition = "hanging"
)

// askDown is how often a cell that is down is looked at. Who asks for a project of it looks as well.
const askDown = time.Second

// visit is a statement or transaction under way in a cell.
type visit struct {
	cell   *cell
	cancel context.CancelCauseFunc
	began  time.Time
	cut    bool // ended from outside, because the cell hangs; under cell.mu
}

// sign is what the outcome of a visit says of the cell.
type sign int

const (
	nothing  sign = iota // it was ended from here, or for its time
	answered             // the cell, or the database for it, answered
	served               // a statement succeeded
	refused              // the database could not reach the cell
)

func newCell(id int32, log *slog.Logger) *cell {
	return &cell{id: id, log: log, visits: map[*visit]struct{}{}, freed: make(chan struct{}), condition: serving}
}

// allow sets how many visits there may be at a time, and where the cell is reached.
func (c *cell) allow(most int, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most, c.node = most, node
}

// enter begins a visit, when need be after a wait of at most patience. Who finds the cell full and nobody
// coming out for as long does not wait at all. The context ends with the visit.
func (c *cell) enter(ctx context.Context, project string, patience time.Duration) (context.Context, *visit, error) {
	var timer *time.Timer
	for {
		c.mu.Lock()
		now := time.Now()
		if c.condition == hanging {
			c.mu.Unlock()
			return nil, nil, errHangs
		}
		if len(c.visits) < c.most {
			if len(c.visits) == 0 { // what visitors did not wait for it does not owe
				c.waiting = now
			}
			v := &visit{cell: c, began: now}
			ctx, v.cancel = context.WithCancelCause(ctx)
			c.visits[v] = struct{}{}
			c.project = project
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

// restart begins the time that the cell may take for an answer anew. The caller holds c.mu.
func (c *cell) restart(now time.Time) {
	c.waiting = time.Time{}
	if len(c.visits) > 0 {
		c.waiting = now
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

// leave ends a visit, whose outcome is a sign of the cell.
func (v *visit) leave(s sign) {
	v.cancel(nil)
	c := v.cell
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.visits, v)
	now := time.Now()
	if s != nothing {
		c.answered = now
		c.restart(now)
	}
	switch s {
	case served:
		c.served = now
		// One that began before it was down says nothing of it since.
		if c.condition == down && v.began.After(c.since) {
			c.turn(serving, now, nil)
		}
	case refused:
		c.doubted = c.doubted || c.condition == serving
	}
	c.wake()
}

// wake has those who wait look again. The caller holds c.mu.
func (c *cell) wake() {
	close(c.freed)
	c.freed = make(chan struct{})
}

// suspect tells whether the cell is to be examined: it has not answered for so long, somebody was told
// that it is out of reach, or it is known not to serve. It gives a project that the cell has, to ask for.
func (c *cell) suspect(silence time.Duration) (project string, suspected bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	suspected = c.doubted || c.condition == hanging || c.quiet(now) >= silence ||
		c.condition == down && now.Sub(c.examined) >= askDown
	return c.project, suspected
}

// judge says how the cell was found to do, by an examination that began at that time, and why. When it
// hangs, what is under way in it is ended. A verdict that an answer since the beginning belies is void.
func (c *cell) judge(is condition, began time.Time, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.doubted, c.examined = false, now
	if is == hanging && c.answered.After(began) || is == down && c.served.After(began) {
		return
	}
	c.turn(is, now, why)
	if is == hanging {
		for v := range c.visits {
			v.cut = true
			v.cancel(errHangs)
		}
	} else {
		c.restart(now)
	}
	c.wake()
}

// turn notes the condition of the cell and tells of it when it is another one. The caller holds c.mu, which
// keeps the lines in order; there are few.
func (c *cell) turn(to condition, now time.Time, why error) {
	if c.condition == to {
		return
	}
	lasted := now.Sub(c.since)
	c.condition, c.since = to, now
	cell := []slog.Attr{slog.Int64("group", int64(c.id)), slog.String("node", c.node)}
	switch to {
	case serving:
		c.log.LogAttrs(context.Background(), slog.LevelInfo, "a part of the database serves again",
			append(cell, slog.Duration("after", lasted.Round(time.Millisecond)))...)
	case down:
		c.log.LogAttrs(context.Background(), slog.LevelWarn, "a part of the database is out of reach; its projects are answered 503",
			append(cell, slog.Any("error", why))...)
	case hanging:
		c.log.LogAttrs(context.Background(), slog.LevelWarn, "a part of the database does not answer; its projects are answered 503, unasked",
			append(cell, slog.Any("error", why))...)
	}
}

// does gives the condition of the cell.
func (c *cell) does() condition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.condition
}
