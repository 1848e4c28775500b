// Package standbys owns reads from standbys. The package reads from standbys that answer and whose data is recent, and
// from the primary if no standby is fit.
//
// The package never writes, and does not find the primary: the parameter target_session_attrs of the primary's URL
// does. A standby may lag, so a caller that must see its own writes reads from the primary's pool.
package standbys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
)

// Options configures [Reads]: the standbys, their pools, the log and the clock.
type Options struct {
	// Standbys are the databases that replicate the primary, one host each. Other nodes of the primary's Citus cluster
	// may be in the list too, but their age is not measured.
	Standbys []config.ServerURL

	// Pool configures each standby's pool.
	Pool pgdb.Options

	// Log records when a standby is left out and when it is back. Default: nothing is logged.
	Log *slog.Logger

	// Now is the clock that measures the age of standbys. Default: time.Now.
	Now func() time.Time
}

// Reads sends reading statements to the standbys in turn, and to the primary if no standby is fit. A standby gets no
// statements while the checks find that it does not answer or is too old. The primary repeats a statement that failed
// on a standby before its first row, unless the statement timed out.
//
// Reads measures lectern.replica.up{node=standby-1|…}: 1 while reads go to the standby, else 0.
type Reads struct {
	primary  *pgdb.Pool
	standbys []*standby
	log      *slog.Logger
	now      func() time.Time

	next    atomic.Uint32            // round robin
	written history                  // of the primary; only the checks use it
	oldest  atomic.Pointer[position] // that a standby must have replayed; nil before the first check

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
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &Reads{primary: primary, log: o.Log, now: o.Now, cancel: cancel}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	for i, url := range o.Standbys {
		name := fmt.Sprintf("standby-%d", i+1)
		options := o.Pool
		options.Name += " " + name
		options.Attach = r.attach(o.Pool.Attach)
		pool, err := pgdb.Open(background, url, options)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		r.standbys = append(r.standbys, &standby{pool: pool, name: name})
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

// attach returns a [pgdb.Options.Attach] that refuses connections to a standby that is too old. A standby that starts
// again may be older than before, and may be back before a check has noticed its absence. The returned function first
// calls also, unless also is nil.
func (r *Reads) attach(also func(*pgdb.Pool, pgdb.Options, *pgxpool.Config)) func(*pgdb.Pool, pgdb.Options, *pgxpool.Config) {
	return func(p *pgdb.Pool, o pgdb.Options, cfg *pgxpool.Config) {
		if also != nil {
			also(p, o, cfg)
		}
		before := cfg.AfterConnect
		cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			if before != nil {
				if err := before(ctx, conn); err != nil {
					return err
				}
			}
			oldest := r.oldest.Load()
			if oldest == nil {
				return nil // no read comes before the first check
			}
			ctx, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			var at position
			if err := conn.QueryRow(ctx, selectPosition, pgx.QueryExecModeSimpleProtocol).Scan(&at.lsn, &at.system); err != nil {
				return err
			}
			if at.isBefore(*oldest) {
				return errOld
			}
			return nil
		}
	}
}

// Close stops the checks and closes the standbys' pools. Close waits without limit until the pools' connections are
// returned.
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

// Health returns nil if records can be read from a standby or from the primary.
func (r *Reads) Health(ctx context.Context) error {
	if _, serving := r.Standbys(); serving > 0 {
		return nil
	}
	return r.primary.Health(ctx)
}

// Standbys returns how many standbys there are, and how many of them serve reads.
func (r *Reads) Standbys() (all, serving int) {
	for _, s := range r.standbys {
		if s.use.Load() != nil {
			serving++
		}
	}
	return len(r.standbys), serving
}

// Query runs sql on a standby, or on the primary if no standby is fit, as [pgdb.Pool.Query] does. If the statement
// fails on the standby before its first row, Query calls read again with the rows of the primary. A statement that
// timed out is not repeated.
func (r *Reads) Query(ctx context.Context, read func(rows pgx.Rows) error, sql string, args ...any) error {
	return r.Pinned().Query(ctx, read, sql, args...)
}

// Pinned returns a Querier that keeps using one database, as [pgdb.Pinned] describes. If that database is a standby and
// fails, the primary replaces it: another standby might lack rows that the first standby has shown.
func (r *Reads) Pinned() pgdb.Querier {
	n, first := uint32(len(r.standbys)), r.next.Add(1)
	for i := range n {
		if s := r.standbys[(first+i)%n]; s.use.Load() != nil {
			return &pinned{at: s, primary: r.primary}
		}
	}
	return r.primary
}

// pinned reads from one standby until it repeats a statement on the primary, and from then on from the primary.
type pinned struct {
	at      *standby // nil: the primary
	primary *pgdb.Pool
}

// Query runs sql on the pinned standby. If the statement fails before its first row, and not by its time-out, Query
// repeats it on the primary.
func (p *pinned) Query(ctx context.Context, read func(rows pgx.Rows) error, sql string, args ...any) error {
	if p.at != nil {
		retry, err := p.at.query(ctx, read, sql, args)
		if !retry {
			return err
		}
		p.at = nil
	}
	return p.primary.Query(ctx, read, sql, args...)
}

// standby is one database that replicates the primary, and whether reads go to it now.
type standby struct {
	pool *pgdb.Pool
	name string                 // in logs and metrics; never its host
	use  atomic.Pointer[period] // nil while it is left out; only the checks change it

	checked bool // the log says whether it is in use
}

// period is a time in which reads go to a standby. The context of the period ends when the standby fails.
type period struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// query runs a statement on the standby. retry reports that the primary must run the statement. Either the standby is
// left out, or the statement failed before its first row and did not time out.
func (s *standby) query(ctx context.Context, read func(rows pgx.Rows) error, sql string, args []any) (retry bool, err error) {
	current := s.use.Load()
	if current == nil {
		return true, nil
	}
	// A standby that hangs would hold the statement until its time-out, long after the checks have noticed the fault.
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(current.ctx, cancel)()
	var seen pgdb.WatchedRows
	var readErr error
	err = s.pool.Query(bounded, func(rows pgx.Rows) error {
		seen.Rows = rows
		readErr = read(&seen)
		return readErr
	}, sql, args...)
	switch {
	case err == nil, ctx.Err() != nil, readErr != nil && errors.Is(err, readErr):
		return false, err
	case bounded.Err() != nil: // the checks found that the standby fails
		err = apierr.NotAvailable(err)
	case pgdb.TimedOut(err): // the statement would take as long on the primary
		return false, err
	}
	return !seen.Seen, err
}
