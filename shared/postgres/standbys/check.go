package standbys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/telemetry/untraced"
)

const (
	// maxAge is the greatest age of the data that a standby serves, as long as the primary answers the checks.
	maxAge = 10 * time.Second

	checkInterval = time.Second
	checkTimeout  = 2 * time.Second // of one database

	// historySpan is how much older than the primary a standby's data may be at a check. The result counts until the
	// next check has ended, and both checks may take checkTimeout.
	historySpan = maxAge - 2*checkTimeout
)

// selectPosition selects a database's position in the primary's log, in bytes, and the identifier of the log's system.
// Any role may run this statement.
const selectPosition = `
	SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, '0/0')::int8,
	       (SELECT system_identifier FROM pg_control_system())`

// position is a position in the write-ahead log of a database system, in bytes from the log's start.
type position struct {
	system int64
	lsn    int64
}

// isBefore reports whether a database at p lacks data that the log has up to q. Positions of two systems, such as two
// nodes of a Citus cluster, cannot be compared: then isBefore returns false.
func (p position) isBefore(q position) bool { return p.system == q.system && p.lsn < q.lsn }

// errBusy is the result of a check if all connections to a database are in use and make progress. The database is
// healthy.
var errBusy = errors.New("all connections are busy")

// ask returns a database's position. The error is errBusy if no connection was free and other statements have
// completed.
func ask(ctx context.Context, p *pgdb.Pool) (at position, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	before := p.Completed()
	err = p.QueryRow(ctx, []any{&at.lsn, &at.system}, selectPosition)
	if errors.Is(err, pgdb.ErrNoConnection) && p.Completed() > before {
		return position{}, errBusy
	}
	return at, err
}

// history has the positions that the primary had within historySpan, the oldest first. If the primary has not answered
// for a while, history also has the position before. So standbys get time to replay new data.
type history []mark

type mark struct {
	position
	at time.Time
}

// add returns the history with the newer mark m. add drops marks older than historySpan, but keeps the last mark before
// m. A position before the last mark's, or in another system, belongs to another primary after a failover. Then the
// history has only m.
func (h history) add(m mark) history {
	if n := len(h); n > 0 && (m.system != h[n-1].system || m.isBefore(h[n-1].position)) {
		h = nil
	}
	for len(h) > 1 && m.at.Sub(h[0].at) > historySpan {
		h = h[1:]
	}
	return append(h, m)
}

// oldest returns the position that a standby must have replayed. If no check has reached the primary yet, the position
// is zero, and every standby is recent enough.
func (h history) oldest() position {
	if len(h) == 0 {
		return position{}
	}
	return h[0].position
}

// watch checks all databases every checkInterval until ctx ends.
func (r *Reads) watch(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	ctx = untraced.Context(ctx)
	for {
		r.check(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// errOld is the reason to leave out a standby that answers, but whose data is too old.
var errOld = fmt.Errorf("it has not replayed what the primary had written %v ago", historySpan)

// check asks all databases for their positions at the same time. Then check sends reads to each standby that answers
// and is recent. check leaves out a standby that fails or is too old, and does not change a busy standby. If the
// primary does not answer, check compares with its last known positions.
func (r *Reads) check(ctx context.Context) {
	var asking sync.WaitGroup
	written := mark{at: r.now()} // before the primary answers, so that no age is underestimated
	var fault error
	asking.Go(func() { written.position, fault = ask(ctx, r.primary) })
	replayed, faults := make([]position, len(r.standbys)), make([]error, len(r.standbys))
	for i, s := range r.standbys {
		asking.Go(func() { replayed[i], faults[i] = ask(ctx, s.pool) })
	}
	asking.Wait()
	if ctx.Err() != nil {
		return
	}
	if fault == nil {
		r.written = r.written.add(written)
		oldest := r.written.oldest()
		r.oldest.Store(&oldest)
	}
	for i, s := range r.standbys {
		switch err := faults[i]; {
		case errors.Is(err, errBusy): // the standby answers, and the next check decides
		case err != nil:
			r.leaveOut(ctx, s, err)
		case replayed[i].isBefore(r.written.oldest()):
			r.leaveOut(ctx, s, errOld)
		case s.use.Load() == nil:
			next := &period{}
			next.ctx, next.cancel = context.WithCancel(context.Background())
			s.use.Store(next)
			s.checked = true
			r.log.InfoContext(ctx, "reads go to a standby", slog.String("standby", s.name))
		}
	}
}

// leaveOut sends no more reads to a standby, and logs why once. leaveOut also cancels the statements on the standby and
// drops its connections, unless the standby is only old.
func (r *Reads) leaveOut(ctx context.Context, s *standby, why error) {
	last := s.use.Swap(nil)
	if last == nil && s.checked {
		return // the standby is left out already, and the log has the reason
	}
	s.checked = true
	if last != nil && !errors.Is(why, errOld) {
		last.cancel()
		s.pool.Reset() // connections to the failed server are of no use
	}
	r.log.WarnContext(ctx, "a standby is left out", slog.String("standby", s.name), slog.Any("error", why))
}

// measure registers the metric lectern.replica.up. If p is nil, measure registers nothing.
func (r *Reads) measure(p metric.MeterProvider) error {
	if p == nil {
		return nil
	}
	m := p.Meter("github.com/lectern-dev/lectern/shared/postgres/standbys")
	up, err := m.Int64ObservableGauge("lectern.replica.up",
		metric.WithDescription("1 while reads go to the standby, 0 while it is left out."))
	if err != nil {
		return fmt.Errorf("measure the standbys: %w", err)
	}
	r.meters, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, s := range r.standbys {
			serving := int64(0)
			if s.use.Load() != nil {
				serving = 1
			}
			o.ObserveInt64(up, serving, metric.WithAttributes(attribute.String("node", s.name)))
		}
		return nil
	}, up)
	return err
}
