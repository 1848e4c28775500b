// Package pgreplica owns reads from standbys. It chooses standbys that answer and whose lag is small enough, and
// reads from the primary if there are none.
//
// It never writes, and it does not find the primary: the primary's URL does that (target_session_attrs). A standby
// may lag, so a caller that must see its own writes reads from the primary's pool.
package pgreplica

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
	"github.com/lectern-dev/lectern/shared/pgdb"
)

// Options configure Reads.
type Options struct {
	// Standbys are the databases that replicate the primary, one host each. They may also be other nodes of the
	// primary's Citus cluster, which have no lag of their own.
	Standbys []config.Secret

	// MaxLag is the greatest lag of a standby that is read from. Lag counts from the time when the primary had a
	// change, so an idle primary causes no lag. 0: lag is not measured.
	MaxLag time.Duration

	// CheckInterval is the time between two checks of a standby. Default: 1s, or a quarter of MaxLag if that is less.
	CheckInterval time.Duration

	// Pool configures each standby's pool.
	Pool pgdb.Options

	// Log records when a standby is left out and when it is back. Default: nothing is logged.
	Log *slog.Logger

	// Now is the clock that measures lag. Default: time.Now.
	Now func() time.Time
}

// Reads spreads reading statements over standbys, and sends them to the primary if no standby is fit. It leaves a
// standby out while it does not answer or lags too far. It repeats a statement elsewhere that failed on a standby
// before its first row. So clients see neither the death of a standby nor its conflicts with replication.
//
// It measures:
//
//	lectern.database.reads{node=primary|standby-1|…}   statements that were sent there
//	lectern.replica.up{node}                           1 while reads go there, else 0
//	lectern.replica.lag{node}                          seconds behind the primary at the last check
type Reads struct {
	primary  *pgdb.Pool
	standbys []*standby
	o        Options

	next      atomic.Uint32 // round robin
	byPrimary atomic.Int64
	written   history // positions of the primary

	cancel     context.CancelFunc
	background sync.WaitGroup
	meters     metric.Registration
}

var _ pgdb.Querier = (*Reads)(nil)

// Open returns Reads over primary and the standbys in o. The caller closes primary after Reads. Open waits for no
// database: a standby is used after its first successful check.
func Open(ctx context.Context, primary *pgdb.Pool, o Options) (_ *Reads, err error) {
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
		pool, err := pgdb.Open(background, url, options)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s := &standby{pool: pool, name: name}
		s.state.Store(new(state))
		r.standbys = append(r.standbys, s)
	}
	if len(r.standbys) == 0 {
		return r, nil
	}
	if err := r.measure(o.Pool.MeterProvider); err != nil {
		return nil, err
	}
	r.background.Go(func() { r.watch(background) })
	return r, nil
}

// Close stops the checks and closes the standbys' pools. It waits until their connections are returned.
func (r *Reads) Close() {
	r.cancel()
	r.background.Wait()
	for _, s := range r.standbys {
		s.pool.Close()
	}
	if r.meters != nil {
		_ = r.meters.Unregister() // cannot fail: it was registered
	}
}

// Health returns nil if records can be read: from a standby, or else from the primary.
func (r *Reads) Health(ctx context.Context) error {
	for _, s := range r.standbys {
		if s.state.Load().up {
			return nil
		}
	}
	return r.primary.Health(ctx)
}

// Standbys returns how many standbys there are, and how many of them serve reads.
func (r *Reads) Standbys() (all, serving int) {
	for _, s := range r.standbys {
		if s.state.Load().up {
			serving++
		}
	}
	return len(r.standbys), serving
}

// Query runs sql on a standby, or on the primary if no standby is fit. Otherwise it is [pgdb.Pool.Query]. After a
// call of read that saw no row, it may call read again, with the rows of another database.
func (r *Reads) Query(ctx context.Context, read func(rows pgx.Rows) error, sql string, args ...any) error {
	if len(r.standbys) == 0 {
		return r.primary.Query(ctx, read, sql, args...)
	}
	_, err := r.query(ctx, r.choose(), read, sql, args)
	return err
}

// choose returns the next fit standby, round robin, or nil if there is none.
func (r *Reads) choose() *standby {
	n := uint32(len(r.standbys))
	next := r.next.Add(1)
	for i := range n {
		if s := r.standbys[(next+i)%n]; s.state.Load().up {
			return s
		}
	}
	return nil
}

// query runs sql on s, and elsewhere if s fails before its first row. It returns the standby that answered, or nil
// for the primary.
func (r *Reads) query(ctx context.Context, s *standby, read func(rows pgx.Rows) error, sql string, args []any) (*standby, error) {
	for range r.standbys {
		if s == nil {
			break
		}
		again, err := s.query(ctx, r, read, sql, args)
		if again == noRetry {
			return s, err
		}
		if s = nil; again == retryElsewhere {
			s = r.choose()
		}
	}
	return nil, r.queryPrimary(ctx, read, sql, args)
}

func (r *Reads) queryPrimary(ctx context.Context, read func(rows pgx.Rows) error, sql string, args []any) error {
	r.byPrimary.Add(1)
	return r.primary.Query(ctx, read, sql, args...)
}

// Pinned returns a Querier that keeps using the database that answers first, as [pgdb.Pinned] describes. If that is a
// standby and it fails, the primary replaces it: another standby might lack rows that the first one has shown.
func (r *Reads) Pinned() pgdb.Querier {
	if len(r.standbys) == 0 {
		return r
	}
	return &pinned{reads: r}
}

// pinned reads from one database as long as that one is fit.
type pinned struct {
	reads *Reads
	known bool
	at    *standby // nil: the primary
}

// Query does the same as [Reads.Query].
func (p *pinned) Query(ctx context.Context, read func(rows pgx.Rows) error, sql string, args ...any) (err error) {
	if p.known && p.at != nil {
		again, err := p.at.query(ctx, p.reads, read, sql, args)
		if again == noRetry {
			return err
		}
		p.at = nil
	}
	if p.known {
		return p.reads.queryPrimary(ctx, read, sql, args)
	}
	p.at, err = p.reads.query(ctx, p.reads.choose(), read, sql, args)
	p.known = true
	return err
}

// standby is one database that replicates the primary.
type standby struct {
	pool       *pgdb.Pool
	name       string // in logs and metrics; never its host
	reads      atomic.Int64
	lag        atomic.Int64 // at the last check
	state      atomic.Pointer[state]
	unmeasured bool // its lag cannot be measured; only the checks use this
}

// state is a period in which a standby is used or left out.
type state struct {
	up     bool
	ctx    context.Context // ends with the period and cancels the standby's statements; nil if not up
	cancel context.CancelFunc
}

// retry says where a failed statement may be repeated.
type retry int

const (
	noRetry retry = iota
	retryElsewhere
	retryOnPrimary
)

// query runs a statement on the standby. It offers a retry only if read saw no row.
func (s *standby) query(ctx context.Context, r *Reads, read func(rows pgx.Rows) error, sql string, args []any) (retry, error) {
	state := s.state.Load()
	if !state.up {
		return retryElsewhere, nil
	}
	s.reads.Add(1)
	// A standby that hangs would hold the statement until its time-out, long after the checks have noticed it.
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(state.ctx, cancel)()
	var seen pgdb.WatchedRows
	var readErr error
	err := s.pool.Query(bounded, func(rows pgx.Rows) error {
		seen.Rows = rows
		readErr = read(&seen)
		return readErr
	}, sql, args...)
	switch {
	case err == nil, ctx.Err() != nil, readErr != nil && errors.Is(err, readErr):
		return noRetry, err
	case bounded.Err() != nil: // the checks found that the standby fails
		err = apierr.NotAvailable(err)
	case errors.Is(err, pgdb.ErrNoConnection): // full or out of reach: the next check decides
	case lost(err):
		r.leaveOut(ctx, s, state, err)
	}
	pg, _ := errors.AsType[*pgconn.PgError](err)
	switch {
	case seen.Seen, pg != nil && pg.Code == "57014": // a time-out: the statement would take as long elsewhere
		return noRetry, err
	case pg != nil: // a conflict with replication, or a migration that has not arrived
		return retryOnPrimary, err
	}
	return retryElsewhere, err
}

// lost reports whether err means that the database failed, and not the statement.
func lost(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		// As an ERROR, class 08 comes from a Citus node that cannot reach another one.
		return strings.HasPrefix(pg.Code, "08") && pg.SeverityUnlocalized != "ERROR" || strings.HasPrefix(pg.Code, "57P0")
	}
	return apierr.From(err).Code() == apierr.Unavailable
}
