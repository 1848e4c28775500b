package pgdb

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/trace"
)

// Hint tells what a [Pool] may do with a statement. It stands behind the last parameter.
type Hint uint8

// Brief says of a statement that it reads, and gives little and soon: a record, or a page of them. Brief
// statements that would wait for a connection go together over the next one that is free, in one round trip
// (pipeline mode; PostgreSQL documentation, 34.5 and 55.2.4), up to eight of them. A server that has more to do
// than it can thus has less to do for each.
//
// What they share is the connection: one that fails leaves the others unharmed, and one whose context ends
// is left by its caller at once. But one that takes long holds up those behind it.
//
// Statements go alone where tables are distributed, as the parts of such a database fail apart; with traces,
// which show each alone; and in any mode of execution but cache_statement.
const Brief Hint = 1

// mostTogether is how many brief statements share a connection at a time: more save little, and each waits
// for those before it.
const mostTogether = 8

// brief is a brief statement that is asked for.
type brief struct {
	ctx  context.Context
	read func(rows pgx.Rows) error
	sql  string
	args []any

	came time.Time
	took time.Duration

	stage atomic.Int32
	party *party    // that it goes with; set before stage is taken
	word  chan word // what becomes of it, once; nil for one that never waited

	// Of one that was answered:
	err      error
	panicked any
}

// Stages of a brief statement. A caller whose context ends may leave before its rows are read, not meanwhile:
// they are read by what it gave for that.
const (
	waiting int32 = iota
	leading       // goes for a connection itself
	taken         // is on its way with others
	reading
	through // answered
	gone    // its caller has left
)

// word is what a waiting caller is told.
type word int

const (
	lead  word = iota // go for a connection
	done              // answered
	apart             // go alone: those it went with have failed before its first row
)

// briefs are the brief statements of a pool that wait for a connection.
type briefs struct {
	mu      sync.Mutex
	leaders int // who have a connection or go for one
	waiting []*brief
	choice  choice

	joined atomic.Int64 // statements that went over a connection that another one had got
}

// hinted takes the hint off a statement's parameters.
func hinted(args []any) (brief bool, rest []any) {
	if last := len(args) - 1; last >= 0 {
		if h, ok := args[last].(Hint); ok {
			return h == Brief, args[:last]
		}
	}
	return false, args
}

// together tells whether a brief statement may go with others.
func (p *Pool) together(ctx context.Context) bool {
	return p.options.ExecMode == "cache_statement" && !p.bulkheads.isCitus.Load() &&
		!(p.traced && trace.SpanFromContext(ctx).IsRecording())
}

// queryBriefly runs a brief statement, with others if it has to wait for a connection.
func (p *Pool) queryBriefly(ctx context.Context, read func(rows pgx.Rows) error, sql string, args []any) error {
	s := &brief{ctx: ctx, read: read, sql: sql, args: args, came: time.Now()}
	if p.briefs.join(s) {
		return p.lead(s)
	}
	told, err := p.await(s)
	switch {
	case err != nil:
		return err
	case told == lead:
		return p.lead(s)
	case told == apart:
		return p.queryAlone(ctx, read, sql, args)
	case s.panicked != nil:
		panic(s.panicked)
	}
	return s.err
}

// join has s lead, or wait when enough do.
func (b *briefs) join(s *brief) (leads bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leaders < b.choice.room() {
		b.leaders++
		s.stage.Store(leading)
		return true
	}
	s.word = make(chan word, 1)
	b.waiting = append(b.waiting, s)
	return false
}

// gather makes a party of a leader and those who have waited longest.
func (b *briefs) gather(leader *brief) *party {
	p := &party{of: []*brief{leader}}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.choice.alone || len(b.waiting) == 0 {
		return p
	}
	p.ctx, p.cancel = context.WithCancelCause(context.WithoutCancel(leader.ctx))
	p.stay.Store(mostTogether)
	n := 0
	for n < len(b.waiting) && len(p.of) < mostTogether {
		s := b.waiting[n]
		n++
		s.party = p
		if s.stage.CompareAndSwap(waiting, taken) {
			p.of = append(p.of, s)
		}
	}
	b.drop(n)
	p.stay.Add(int32(len(p.of) - mostTogether))
	return p
}

// pass ends a lead that had these answered, and has those lead who waited longest.
func (b *briefs) pass(of []*brief) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leaders >= b.choice.few { // while nobody has to wait, all go alone and at once anyway
		now := time.Now()
		for _, s := range of {
			if s.took > 0 {
				b.choice.learn(s.took, now)
			}
		}
	}
	b.leaders--
	told := 0
	for ; told < len(b.waiting) && b.leaders < b.choice.room(); told++ {
		if s := b.waiting[told]; s.stage.CompareAndSwap(waiting, leading) {
			b.leaders++
			s.word <- lead
		}
	}
	b.drop(told)
}

// drop takes the first n off those who wait. The caller holds b.mu.
func (b *briefs) drop(n int) {
	rest := copy(b.waiting, b.waiting[n:])
	clear(b.waiting[rest:])
	b.waiting = b.waiting[:rest]
}

// await waits for what becomes of s, no longer than for a connection until its rows are read.
func (p *Pool) await(s *brief) (word, error) {
	patience := p.patience().Done()
	ended := s.ctx.Done()
	for {
		select {
		case told := <-s.word:
			return told, nil
		case <-patience:
			if s.leave(errNoConnection) {
				return 0, errNoConnection
			}
			patience = nil
		case <-ended:
			if s.leave(context.Cause(s.ctx)) {
				return 0, s.ctx.Err()
			}
			if s.stage.Load() == reading {
				s.party.left(context.Cause(s.ctx)) // it waits for what it gave to be let go, and for no rows
			}
			ended = nil
		}
	}
}

// leave tells whether the caller may go, for a cause: nobody will use what it gave any more. Otherwise its rows
// are being read, or it leads, and it will soon be told.
func (s *brief) leave(why error) bool {
	if s.stage.CompareAndSwap(waiting, gone) {
		return true
	}
	if s.stage.CompareAndSwap(taken, gone) {
		s.party.left(why)
		return true
	}
	return false
}

// party are brief statements on their way together. The first leads.
type party struct {
	of     []*brief
	ctx    context.Context
	cancel context.CancelCauseFunc
	stay   atomic.Int32 // callers that wait for it
}

// left notes that a caller does not wait any more, and why. When none does, the statements are ended for that.
func (p *party) left(why error) {
	if p.stay.Add(-1) == 0 {
		p.cancel(why)
	}
}

// lead goes for a connection for s, and takes along who waits by then.
func (p *Pool) lead(s *brief) error {
	l, err := p.borrow(s.ctx, "")
	if err != nil {
		p.briefs.pass(nil)
		return err
	}
	with := p.briefs.gather(s)
	defer p.briefs.pass(with.of)
	if with.cancel == nil { // nobody waits
		err := p.queryOver(l, s.read, s.sql, s.args)
		s.took = time.Since(s.came)
		return err
	}
	if p.travel(l, with); s.stage.Load() == through {
		return s.err
	}
	return p.queryAlone(s.ctx, s.read, s.sql, s.args)
}

// travel has a party's statements run over l, and tells each caller what became of its own.
func (p *Pool) travel(l lease, with *party) {
	defer with.cancel(nil)
	leader := with.of[0]
	leader.stage.Store(taken)
	defer context.AfterFunc(leader.ctx, func() { with.left(context.Cause(leader.ctx)) })()
	p.briefs.joined.Add(int64(len(with.of) - 1))

	batch := &pgx.Batch{}
	for _, s := range with.of {
		batch.Queue(s.sql, s.args...)
	}
	results := l.conn.SendBatch(with.ctx, batch)
	defer func() { // also when what reads the leader's rows panics
		err := results.Close()
		for _, s := range with.of[1:] {
			if s.stage.Load() != through {
				s.word <- apart // nobody listens when its caller has left
			}
		}
		p.giveBack(l, err)
	}()
	for _, s := range with.of {
		if !s.answer(results, s == leader) {
			return
		}
	}
}

// answer has the next of results read by s. It tells whether the one behind can be read.
func (s *brief) answer(results pgx.BatchResults, leads bool) bool {
	rows, err := results.Query()
	if err == nil {
		defer rows.Close() // also when read panics
	}
	if !s.stage.CompareAndSwap(taken, reading) {
		if err == nil {
			rows.Close()
			err = rows.Err()
		}
		return err == nil
	}
	first := &firstRow{}
	if err == nil {
		read := first.reader(s.read)
		if leads {
			s.err = read(rows)
		} else {
			s.panicked, s.err = guarded(read, rows)
		}
		rows.Close()
		err = rows.Err()
	}
	if err != nil {
		if !first.seen && s.panicked == nil && again(err, leads) {
			s.stage.Store(taken)
			return false
		}
		s.err = left(s.ctx, err)
	}
	s.took = time.Since(s.came)
	s.stage.Store(through)
	if !leads {
		s.word <- done
	}
	return err == nil
}

// again tells whether a statement that failed with err before its first row is worth asking for alone: what is
// not its own fault, but that of those before it or of the connection. Who led got the connection for itself.
func again(err error, leads bool) bool {
	if stalePlan(err) || exchanged(err) {
		return true
	}
	_, own := errors.AsType[*pgconn.PgError](err)
	return !own && !leads
}

// guarded runs read for another goroutine, which gets its panic.
func guarded(read func(pgx.Rows) error, rows pgx.Rows) (panicked any, err error) {
	defer func() { panicked = recover() }()
	return nil, read(rows)
}
