package pgreplica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/telemetry/untraced"
)

// checkTimeout bounds the check of one database.
const checkTimeout = 2 * time.Second

// selectPosition selects three values. The first is a database's position in the primary's log, in bytes. The second
// is the age in seconds of the last transaction that it replayed, or 0 if it has replayed all that it received. The
// third is the identifier of the log's system. Any role may run the statement.
const selectPosition = `
	SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, '0/0')::int8,
	       coalesce(CASE WHEN pg_is_in_recovery() AND pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()
	                THEN extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) END, 0)::float8,
	       (SELECT system_identifier FROM pg_control_system())`

// position is a database's position in the log.
type position struct {
	lsn    int64
	lag    time.Duration // as the database itself reports it
	system int64         // identifier of the log's system
}

func positionOf(ctx context.Context, p *pgdb.Pool) (at position, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var seconds float64
	err = p.QueryRow(ctx, []any{&at.lsn, &seconds, &at.system}, selectPosition)
	at.lag = time.Duration(seconds * float64(time.Second))
	return at, err
}

// history records the primary's positions over time.
type history struct {
	span   time.Duration // how far back it must reach
	system int64         // identifier of the log's system
	since  time.Time     // time of the first record
	marks  []mark        // ascending in time and position
}

type mark struct {
	lsn int64
	at  time.Time
}

// add records that the primary was at lsn. A position before the last one belongs to another primary, after a
// failover. Then the history starts again.
func (h *history) add(lsn int64, at time.Time) {
	if n := len(h.marks); n > 0 {
		last := h.marks[n-1]
		if lsn < last.lsn {
			*h = history{span: h.span}
		} else if lsn == last.lsn || at.Sub(last.at) < h.span/64 {
			return // bounds the memory for any span
		}
	}
	if h.marks == nil {
		h.since = at
	}
	h.marks = append(h.marks, mark{lsn, at})
	for len(h.marks) > 2 && at.Sub(h.marks[1].at) > 2*h.span {
		h.marks = h.marks[1:]
	}
}

// lag returns how long ago the primary was first seen after the position where.
func (h *history) lag(where position, now time.Time) time.Duration {
	if len(h.marks) == 0 {
		return where.lag // the primary was never reached
	}
	if where.system != h.system {
		return where.lag // another node of a Citus cluster, or a standby of one
	}
	for _, m := range h.marks {
		if m.lsn <= where.lsn {
			continue
		}
		lag := now.Sub(m.at)
		if now.Sub(h.since) < h.span {
			// The history is too short.
			lag = max(lag, where.lag)
		}
		return lag
	}
	return 0
}

// watch checks all standbys periodically until ctx ends.
func (r *Reads) watch(ctx context.Context) {
	tick := time.NewTicker(r.o.CheckInterval)
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

// check asks all databases for their position at once. It takes standbys into use or leaves them out.
func (r *Reads) check(ctx context.Context) {
	var asking sync.WaitGroup
	var head position
	var fault error
	positions, faults := make([]position, len(r.standbys)), make([]error, len(r.standbys))
	at := r.o.Now() // before the primary answers, so that lag is not underestimated
	if r.o.MaxLag > 0 {
		asking.Go(func() { head, fault = positionOf(ctx, r.primary) })
	}
	for i, s := range r.standbys {
		asking.Go(func() { positions[i], faults[i] = probe(ctx, s.pool, r.o.MaxLag > 0) })
	}
	asking.Wait()
	if ctx.Err() != nil {
		return
	}
	if r.o.MaxLag > 0 && fault == nil {
		r.written.add(head.lsn, at)
		r.written.system = head.system
	}
	now := r.o.Now()
	for i, s := range r.standbys {
		r.judge(ctx, s, positions[i], faults[i], now)
	}
}

// errUnmeasured is the fault of a standby that answers but has no position.
var errUnmeasured = errors.New("lag cannot be measured here")

// probe asks a standby for its position. If lag is not measured, it only checks that the standby answers.
func probe(ctx context.Context, p *pgdb.Pool, measured bool) (position, error) {
	if !measured {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		return position{}, p.Ping(ctx)
	}
	before := p.Completed()
	at, err := positionOf(ctx, p)
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && (pg.Code == "42883" || pg.Code == "42501" || pg.Code == "0A000" || pg.Code == "55000"):
		// No such functions, no permission or not supported: another kind of replication.
		return position{}, fmt.Errorf("%w: %w", errUnmeasured, err)
	case errors.Is(err, pgdb.ErrNoConnection) && p.Completed() > before:
		return position{}, errBusy
	}
	return at, err
}

// errBusy is the fault of a standby whose connections are all in use and make progress.
var errBusy = errors.New("all connections are busy")

// judge takes a standby into use or leaves it out, depending on the outcome of its check.
func (r *Reads) judge(ctx context.Context, s *standby, where position, err error, now time.Time) {
	before := s.state.Load()
	switch {
	case errors.Is(err, errBusy):
		return
	case errors.Is(err, errUnmeasured):
		if !s.unmeasured {
			s.unmeasured = true
			r.o.Log.WarnContext(ctx, "the lag of a standby cannot be measured; reads go there whatever its lag",
				slog.String("standby", s.name), slog.Any("error", err))
		}
		s.lag.Store(0)
	case err != nil:
		r.leaveOut(ctx, s, before, err)
		return
	case r.o.MaxLag > 0:
		lag := r.written.lag(where, now)
		s.lag.Store(int64(lag))
		if lag > r.o.MaxLag {
			if before.up && s.state.CompareAndSwap(before, new(state)) {
				r.o.Log.WarnContext(ctx, "a standby lags too far behind and is left out",
					slog.String("standby", s.name), slog.Duration("lag", lag))
			}
			return
		}
	}
	if before.up {
		return
	}
	up := &state{up: true}
	up.ctx, up.cancel = context.WithCancel(context.Background())
	if s.state.CompareAndSwap(before, up) {
		r.o.Log.InfoContext(ctx, "reads go to a standby", slog.String("standby", s.name))
	}
}

// leaveOut stops the use of a standby that failed, and cancels the statements there.
func (r *Reads) leaveOut(ctx context.Context, s *standby, before *state, why error) {
	if !before.up || !s.state.CompareAndSwap(before, new(state)) {
		return
	}
	before.cancel()
	s.pool.Reset() // connections to the failed server are of no use
	r.o.Log.WarnContext(ctx, "a standby fails and is left out", slog.String("standby", s.name), slog.Any("error", why))
}

// measure registers the metrics.
func (r *Reads) measure(p metric.MeterProvider) error {
	if p == nil {
		return nil
	}
	m := p.Meter("github.com/lectern-dev/lectern/shared/pgreplica")
	reads, err1 := m.Int64ObservableCounter("lectern.database.reads", metric.WithUnit("{statement}"),
		metric.WithDescription("Statements that read, by the database that they were sent to."))
	up, err2 := m.Int64ObservableGauge("lectern.replica.up",
		metric.WithDescription("1 while reads go to the standby, 0 while it is left out."))
	lag, err3 := m.Float64ObservableGauge("lectern.replica.lag", metric.WithUnit("s"),
		metric.WithDescription("How far the standby was behind the primary at the last check."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("measure the standbys: %w", err)
	}
	node := func(name string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attribute.String("node", name)))
	}
	first := node("primary")
	others := make([]metric.MeasurementOption, len(r.standbys))
	for i, s := range r.standbys {
		others[i] = node(s.name)
	}
	var err error
	r.meters, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(reads, r.byPrimary.Load(), first)
		for i, s := range r.standbys {
			o.ObserveInt64(reads, s.reads.Load(), others[i])
			o.ObserveFloat64(lag, time.Duration(s.lag.Load()).Seconds(), others[i])
			serving := int64(0)
			if s.state.Load().up {
				serving = 1
			}
			o.ObserveInt64(up, serving, others[i])
		}
		return nil
	}, reads, up, lag)
	return err
}
