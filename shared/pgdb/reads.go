package pgdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
)

// Querier runs statements that only read: a [Pool], or [Reads] over several databases. Its contract is
// that of [Pool.Query].
type Querier interface {
	Query(ctx context.Context, read func(rows pgx.Rows) error, sql string, args ...any) error
}

var (
	_ Querier = (*Pool)(nil)
	_ Querier = (*Reads)(nil)
)

// ReadsOptions say which standbys are read from, and when one is not.
type ReadsOptions struct {
	// Standbys are the databases that replicate the primary, one host each; or other nodes of the cluster
	// that it is one of, which have no lag of their own.
	Standbys []config.Secret

	// MaxLag is how far behind the primary a standby may be. What it has not yet replayed counts from
	// when the primary had it, so a primary where nothing happens makes no lag. 0 measures nothing.
	MaxLag time.Duration

	// CheckInterval is how often each standby is asked. Default: 1s, or a quarter of MaxLag when that
	// is less.
	CheckInterval time.Duration

	// Pool says how each standby's pool behaves.
	Pool Options

	// Log hears when a standby is left out and when it is back. Default: nothing is logged.
	Log *slog.Logger

	// Now is the clock that lag is measured by. Default: time.Now.
	Now func() time.Time
}

// Reads spreads statements that read over standbys, and sends them to the primary when no standby is
// fit. A standby is left out while it does not answer or lags too far behind, and is used again, without
// being asked for, when that is over. What a standby fails at before its first row is asked of the
// primary, so that neither its death nor its conflicts with replication reach a client.
//
// A standby may be behind: what was written a moment ago may not be read yet. Whoever can not bear that
// reads from the primary's pool.
//
// It measures:
//
//	lectern.database.reads{node=primary|standby-1|…}   statements that were sent there
//	lectern.replica.up{node}                           1 while reads go there, else 0
//	lectern.replica.lag{node}                          seconds behind the primary when last asked
type Reads struct {
	primary  *Pool
	standbys []*standby
	o        ReadsOptions

	turn      atomic.Uint32
	byPrimary atomic.Int64
	written   history // where the primary was

	cancel context.CancelFunc
	behind sync.WaitGroup
	meters metric.Registration
}

// OpenReads makes Reads over primary, which the caller closes after them, and the standbys that o names.
// It waits for none of them: a standby is used once it was found fit.
func OpenReads(ctx context.Context, primary *Pool, o ReadsOptions) (_ *Reads, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxLag < 0 {
		return nil, config.Invalid("MAX_REPLICA_LAG", o.MaxLag, "0s or more")
	}
	if o.CheckInterval <= 0 {
		o.CheckInterval = time.Second
		if o.MaxLag > 0 {
			o.CheckInterval = max(min(time.Second, o.MaxLag/4), 50*time.Millisecond)
		}
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &Reads{primary: primary, o: o, cancel: cancel, written: history{span: o.MaxLag}}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	for i, url := range o.Standbys {
		name := fmt.Sprintf("standby-%d", i+1)
		options := o.Pool
		options.Name += " " + name
		pool, err := Open(background, url, options)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s := &standby{pool: pool, name: name}
		s.serving.Store(new(stretch))
		r.standbys = append(r.standbys, s)
	}
	if len(r.standbys) == 0 {
		return r, nil
	}
	if err := r.measure(o.Pool.MeterProvider); err != nil {
		return nil, err
	}
	r.behind.Go(func() { r.watch(background) })
	return r, nil
}

// Close ends the checks and closes the standbys' pools.
func (r *Reads) Close() {
	r.cancel()
	r.behind.Wait()
	for _, s := range r.standbys {
		s.pool.Close()
	}
	if r.meters != nil {
		_ = r.meters.Unregister() // fails on nothing that was registered
	}
}

// Health tells whether anything can be read: from the primary or from a standby.
func (r *Reads) Health(ctx context.Context) error {
	for _, s := range r.standbys {
		if s.serving.Load().up {
			return nil
		}
	}
	return r.primary.Health(ctx)
}

// Standbys tells how many standbys there are, and how many of them reads go to.
func (r *Reads) Standbys() (all, serving int) {
	for _, s := range r.standbys {
		if s.serving.Load().up {
			serving++
		}
	}
	return len(r.standbys), serving
}

// Query runs sql on a standby, or on the primary when none is fit. It otherwise does what [Pool.Query]
// does; read may be called again elsewhere when its first call saw no row.
func (r *Reads) Query(ctx context.Context, read func(rows pgx.Rows) error, sql string, args ...any) error {
	if len(r.standbys) == 0 {
		return r.primary.Query(ctx, read, sql, args...)
	}
	_, err := r.query(ctx, r.choose(), read, sql, args)
	return err
}

// choose gives a standby that is fit, in turn; nil when there is none.
func (r *Reads) choose() *standby {
	n := uint32(len(r.standbys))
	turn := r.turn.Add(1)
	for i := range n {
		if s := r.standbys[(turn+i)%n]; s.serving.Load().up {
			return s
		}
	}
	return nil
}

// query asks s, and others when it fails before its first row. It tells who answered, nil being the
// primary.
func (r *Reads) query(ctx context.Context, s *standby, read func(rows pgx.Rows) error, sql string, args []any) (*standby, error) {
	for range r.standbys {
		if s == nil {
			break
		}
		again, err := s.query(ctx, r, read, sql, args)
		if again == no {
			return s, err
		}
		if s = nil; again == anywhere {
			s = r.choose()
		}
	}
	r.byPrimary.Add(1)
	return nil, r.primary.Query(ctx, read, sql, args...)
}

// Pinned returns a Querier that stays with the database that answers it first, for as long as that one
// does: so that what is read in parts is read at one lag. One of another kind than [Reads] is returned
// as it is. It serves one goroutine at a time.
func Pinned(q Querier) Querier {
	if r, ok := q.(*Reads); ok && len(r.standbys) > 0 {
		return &pinned{reads: r}
	}
	return q
}

type pinned struct {
	reads *Reads
	known bool
	at    *standby // nil: the primary
}

// Query does what [Reads.Query] does.
func (p *pinned) Query(ctx context.Context, read func(rows pgx.Rows) error, sql string, args ...any) (err error) {
	if !p.known || p.at != nil && !p.at.serving.Load().up {
		p.at = p.reads.choose()
	}
	p.at, err = p.reads.query(ctx, p.at, read, sql, args)
	p.known = true
	return err
}

// standby is one database that replicates the primary.
type standby struct {
	pool    *Pool
	name    string // in logs and metrics; never its host
	reads   atomic.Int64
	lag     atomic.Int64 // when last asked
	serving atomic.Pointer[stretch]
	blind   bool // its lag can not be told; known to the checks alone
}

// stretch is a time in which a standby is used, or is not.
type stretch struct {
	up  bool
	ctx context.Context // ends when the standby fails, with what is asked of it; nil when not up
	end context.CancelFunc
}

// retry says where else a statement may be tried that failed.
type retry int

const (
	no retry = iota
	anywhere
	primary
)

// query runs a statement on the standby. A retry is only offered when read saw no row.
func (s *standby) query(ctx context.Context, r *Reads, read func(rows pgx.Rows) error, sql string, args []any) (retry, error) {
	serving := s.serving.Load()
	if !serving.up {
		return anywhere, nil
	}
	s.reads.Add(1)
	// A standby that hangs would hold the statement until its time-out, long after the checks saw it.
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(serving.ctx, func() { cancel(errLeftOut) })()
	first := &firstRow{}
	var own error
	err := s.pool.Query(bounded, func(rows pgx.Rows) error {
		own = first.reader(read)(rows)
		return own
	}, sql, args...)
	switch {
	case err == nil, ctx.Err() != nil, own != nil && errors.Is(err, own):
		return no, err
	case bounded.Err() != nil: // the checks found that it fails
		err = apierr.NotAvailable(err)
	case errors.Is(err, errHangs), errors.Is(err, errCrowded): // a part of it, to which this one leads no better than others
		return no, err
	case errors.Is(err, errNoConnection): // full, or out of reach, as the checks will tell
	case lost(err):
		r.leaveOut(ctx, s, serving, err)
	}
	state, _ := errors.AsType[*pgconn.PgError](err)
	switch {
	case first.seen, state != nil && state.Code == "57014": // a time-out: it would take as long elsewhere
		return no, err
	case state != nil: // a conflict with replication, or a migration that has not arrived
		return primary, err
	}
	return anywhere, err
}

// errLeftOut is why a statement ends on a standby that fails.
var errLeftOut = errors.New("the standby fails")

// lost tells whether err says that the database, and not the statement, failed.
func lost(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		// A part of a distributed database is lost to whoever is asked.
		return !partLost(pg) && strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "57P0")
	}
	return transient(err)
}
