package pgdb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// bulkheads keep what happens to one part of a distributed database from those who ask for another. What
// parts there are and who is where is asked of the database, and nothing of it is configured. Where
// tables are not distributed they do nothing, and cost the reading of one pointer.
//
// A part that is down needs nothing: the database says so at once, for its own projects alone. One that
// hangs would take every connection, as each waits for it. So no part may take more than its share, and
// one that does not answer is asked for a sign of life on a connection of its own; when none comes,
// what is under way there is given up, and nobody is let in until it answers. Either is told to the log
// once, and once when it is over, and shows in the figures.
type bulkheads struct {
	placement atomic.Pointer[placement]
	isCitus   atomic.Bool

	mu     sync.Mutex
	asked  time.Time // when it was last asked whether tables are distributed
	begun  bool      // watch runs
	ctx    context.Context
	cancel context.CancelFunc
	behind sync.WaitGroup
}

const (
	// askAgain is how often a pool asks whether tables are distributed by now, when it makes a connection.
	askAgain = time.Minute

	// relearn is how often the placement is read.
	relearn = 5 * time.Second

	// look is how often the cells are looked at.
	look = 200 * time.Millisecond

	// lifeLimit is how long a cell that is suspected may take for a sign of life.
	lifeLimit = 1500 * time.Millisecond

	// linger is how long one is waited for that does not come. The machine may be another one by then.
	linger = 5 * time.Second
)

// Distributed tells whether the tables are distributed over several machines (Citus), as far as is known:
// until the first connection it is not. Statements for a single machine work on several, not all of them
// as well.
func (p *Pool) Distributed() bool { return p.bulkheads.isCitus.Load() }

// Cells tells over how many parts, each of which may fail alone, the tables are distributed; 0 when they
// are not, or it is not known yet.
func (p *Pool) Cells() int {
	if at := p.bulkheads.placement.Load(); at != nil {
		return len(at.cells)
	}
	return 0
}

// afterConnect asks a new connection whether tables are distributed, once in a while.
func (p *Pool) afterConnect(ctx context.Context, conn *pgx.Conn) error {
	b := &p.bulkheads
	b.mu.Lock()
	due := !b.isCitus.Load() && time.Since(b.asked) >= askAgain
	if due {
		b.asked = time.Now()
	}
	b.mu.Unlock()
	if !due {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.ConnectTimeout)
	defer cancel()
	var is bool
	if err := conn.QueryRow(ctx, isDistributed, pgx.QueryExecModeSimpleProtocol).Scan(&is); err != nil {
		b.mu.Lock()
		b.asked = time.Time{}
		b.mu.Unlock()
		if conn.IsClosed() {
			return err
		}
		return nil // whatever it is, it is for who wants the connection to meet
	}
	if !is {
		return nil
	}
	b.isCitus.Store(true)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.begun && b.ctx.Err() == nil {
		b.begun = true
		b.behind.Go(func() { p.watch(b.ctx) })
	}
	return nil
}

// watch learns the placement and looks after the cells until ctx ends.
func (p *Pool) watch(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	var learned time.Time
	var asking sync.WaitGroup
	defer asking.Wait()
	under := map[*cell]*atomic.Bool{}
	for {
		if time.Since(learned) >= relearn {
			learned = time.Now()
			asking.Go(func() { p.relearn(ctx) })
		}
		if at := p.bulkheads.placement.Load(); at != nil {
			for _, c := range at.cells {
				project, suspected := c.suspect(p.options.AcquireTimeout)
				if !suspected {
					continue
				}
				busy := under[c]
				if busy == nil {
					busy = new(atomic.Bool)
					under[c] = busy
				}
				if busy.CompareAndSwap(false, true) {
					asking.Go(func() {
						defer busy.Store(false)
						p.examine(ctx, at, c, project)
					})
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// relearn reads the placement. What can not be read leaves things as they were.
func (p *Pool) relearn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, relearn)
	defer cancel()
	next, err := p.learn(ctx, p.bulkheads.placement.Load())
	if errors.Is(err, errOtherHash) {
		p.bulkheads.placement.Store(nil)
	} else if err == nil {
		p.bulkheads.placement.Store(next)
	}
}

// examine asks a cell for a sign of life on a connection of its own, not one of the pool's, which may all be
// waiting, and judges it by what comes. One that does not come within lifeLimit says that the cell hangs; it is
// waited for a while longer, as what hangs answers that first when it goes on, and is not to find a crowd then.
func (p *Pool) examine(ctx context.Context, at *placement, c *cell, project string) {
	conn, err := p.connectApart(ctx)
	if err != nil {
		return // says nothing of the cell
	}
	asking, cancel := context.WithTimeout(ctx, linger)
	defer cancel()
	began, answer := time.Now(), make(chan error, 1)
	go func() {
		_, err := conn.Exec(asking, "SELECT FROM "+at.table+" WHERE project_id = $1 LIMIT 1", pgx.QueryExecModeExec, project)
		answer <- err
	}()
	patience := time.NewTimer(lifeLimit)
	defer patience.Stop()
	select {
	case err = <-answer:
	case <-patience.C:
		c.judge(hanging, began, fmt.Errorf("no sign of life within %v", lifeLimit))
		err = <-answer
	}
	if is := verdict(err); is != "" {
		c.judge(is, began, err)
	}
	if !conn.IsClosed() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), lifeLimit)
		defer cancel()
		_ = conn.Close(closing) // nothing is lost with it
	}
}

// connectApart makes a connection that is none of the pool's.
func (p *Pool) connectApart(ctx context.Context) (*pgx.Conn, error) {
	cfg := p.pool.Config().ConnConfig
	cfg.ConnectTimeout = lifeLimit
	if p.options.StatementTimeout > 0 {
		// A shorter one would end the question with an answer of the coordinator's.
		cfg.RuntimeParams["statement_timeout"] = fmt.Sprint(2 * linger.Milliseconds())
	}
	ctx, cancel := context.WithTimeout(ctx, lifeLimit)
	defer cancel()
	return pgx.ConnectConfig(ctx, cfg)
}

// verdict tells how a cell does by the outcome of a question to it; empty when it does not say.
func verdict(err error) condition {
	pg, said := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		return serving
	case !said:
		return ""
	case partLost(pg):
		return down
	case pg.Code == "57014": // by the role's own statement_timeout
		return hanging
	case pg.SeverityUnlocalized == "ERROR":
		return serving
	}
	return ""
}

// enter begins a visit to the cell that has the project, if tables are distributed and it is known.
func (p *Pool) enter(ctx context.Context, project string) (context.Context, *visit, error) {
	at := p.bulkheads.placement.Load()
	if at == nil || project == "" {
		return ctx, nil, nil
	}
	c := at.of(project)
	if c == nil {
		return ctx, nil, nil
	}
	return c.enter(ctx, project, p.options.AcquireTimeout)
}

// projectOf gives the project that a statement is of: its first parameter, as in all statements that
// services make of projects' tables.
func projectOf(args []any) string {
	for _, a := range args {
		switch a := a.(type) {
		case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID:
		case string:
			return a
		default:
			return ""
		}
	}
	return ""
}
