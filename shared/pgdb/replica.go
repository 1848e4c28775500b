package pgdb

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
)

// probeLimit is how long a database may take to say where it is.
const probeLimit = 2 * time.Second

// whereabouts asks a database how far it is in the primary's log, in bytes, how old the last transaction is
// that it replayed, in seconds: 0 when it has replayed all that it received; and which system's log that
// is. All may be asked by any role.
const whereabouts = `
	SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, '0/0')::int8,
	       coalesce(CASE WHEN pg_is_in_recovery() AND pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()
	                THEN extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) END, 0)::float8,
	       (SELECT system_identifier FROM pg_control_system())`

// place is where a database is in the log.
type place struct {
	lsn    int64
	own    time.Duration // its own idea of its lag
	system int64         // whose log it is
}

func (p *Pool) place(ctx context.Context) (at place, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var seconds float64
	err = p.QueryRow(ctx, []any{&at.lsn, &seconds, &at.system}, whereabouts)
	at.own = time.Duration(seconds * float64(time.Second))
	return at, err
}

// history is where the primary was when.
type history struct {
	span   time.Duration // how far back it must reach
	system int64         // whose log it is
	since  time.Time     // when it began
	marks  []mark        // each later and farther than the one before
}

type mark struct {
	lsn int64
	at  time.Time
}

// add notes that the primary was at lsn. One that is behind what it was is another primary, after a
// failover: nothing from before counts.
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

// lag tells how long ago the primary was first seen farther than where.
func (h *history) lag(where place, now time.Time) time.Duration {
	if len(h.marks) == 0 {
		return where.own // the primary was never reached
	}
	if where.system != h.system {
		return where.own // another node of a cluster, which replicates another one, or none
	}
	for _, m := range h.marks {
		if m.lsn <= where.lsn {
			continue
		}
		lag := now.Sub(m.at)
		if now.Sub(h.since) < h.span {
			// The primary was not watched for long enough to tell.
			lag = max(lag, where.own)
		}
		return lag
	}
	return 0
}

// watch checks all standbys until ctx ends.
func (r *Reads) watch(ctx context.Context) {
	tick := time.NewTicker(r.o.CheckInterval)
	defer tick.Stop()
	for {
		r.check(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// check asks all databases at once where they are, and judges the standbys by it.
func (r *Reads) check(ctx context.Context) {
	var asking sync.WaitGroup
	var head place
	var fault error
	places, faults := make([]place, len(r.standbys)), make([]error, len(r.standbys))
	at := r.o.Now() // what the primary says is at least as old
	if r.o.MaxLag > 0 {
		asking.Go(func() { head, fault = r.primary.place(ctx) })
	}
	for i, s := range r.standbys {
		asking.Go(func() { places[i], faults[i] = s.pool.probe(ctx, r.o.MaxLag > 0) })
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
		r.judge(ctx, s, places[i], faults[i], now)
	}
}

// errUnmeasured is the fault of a standby that answers and can not tell where it is.
var errUnmeasured = errors.New("lag can not be measured here")

// probe asks a standby where it is, or just whether it answers.
func (p *Pool) probe(ctx context.Context, measured bool) (place, error) {
	if !measured {
		ctx, cancel := context.WithTimeout(ctx, probeLimit)
		defer cancel()
		return place{}, p.Ping(ctx)
	}
	before := p.done.Load()
	at, err := p.place(ctx)
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && (pg.Code == "42883" || pg.Code == "42501" || pg.Code == "0A000" || pg.Code == "55000"):
		// No such functions, or not for us, or not here: replication of another kind.
		return place{}, fmt.Errorf("%w: %w", errUnmeasured, err)
	case errors.Is(err, errNoConnection) && p.done.Load() > before:
		return place{}, errBusy
	}
	return at, err
}

// errBusy is the fault of a standby whose connections are all in use, and getting on.
var errBusy = errors.New("all connections are busy")

// judge takes a standby into use or leaves it out.
func (r *Reads) judge(ctx context.Context, s *standby, where place, err error, now time.Time) {
	serving := s.serving.Load()
	switch {
	case errors.Is(err, errBusy):
		return
	case errors.Is(err, errUnmeasured):
		if !s.blind {
			s.blind = true
			r.o.Log.WarnContext(ctx, "the lag of a standby can not be told; it is read from whatever it is",
				slog.String("standby", s.name), slog.Any("error", err))
		}
		s.lag.Store(0)
	case err != nil:
		r.leaveOut(ctx, s, serving, err)
		return
	case r.o.MaxLag > 0:
		lag := r.written.lag(where, now)
		s.lag.Store(int64(lag))
		if lag > r.o.MaxLag {
			if serving.up && s.serving.CompareAndSwap(serving, new(stretch)) {
				r.o.Log.WarnContext(ctx, "a standby lags too far behind and is left out",
					slog.String("standby", s.name), slog.Duration("lag", lag))
			}
			return
		}
	}
	if serving.up {
		return
	}
	up := &stretch{up: true}
	up.ctx, up.end = context.WithCancel(context.Background())
	if s.serving.CompareAndSwap(serving, up) {
		r.o.Log.InfoContext(ctx, "reads go to a standby", slog.String("standby", s.name))
	}
}

// leaveOut ends the use of a standby that failed, and what is asked of it at this moment.
func (r *Reads) leaveOut(ctx context.Context, s *standby, serving *stretch, why error) {
	if !serving.up || !s.serving.CompareAndSwap(serving, new(stretch)) {
		return
	}
	serving.end()
	s.pool.pool.Reset() // a connection to what it was before is of no use after
	r.o.Log.WarnContext(ctx, "a standby fails and is left out", slog.String("standby", s.name), slog.Any("error", why))
}

// measure registers the figures.
func (r *Reads) measure(p metric.MeterProvider) error {
	if p == nil {
		return nil
	}
	m := p.Meter("github.com/lectern-dev/lectern/shared/pgdb")
	reads, err1 := m.Int64ObservableCounter("lectern.database.reads", metric.WithUnit("{statement}"),
		metric.WithDescription("Statements that read, by the database that they were sent to."))
	up, err2 := m.Int64ObservableGauge("lectern.replica.up",
		metric.WithDescription("1 while reads go to the standby, 0 while it is left out."))
	lag, err3 := m.Float64ObservableGauge("lectern.replica.lag", metric.WithUnit("s"),
		metric.WithDescription("How far the standby was behind the primary when last asked."))
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
			if s.serving.Load().up {
				serving = 1
			}
			o.ObserveInt64(up, serving, others[i])
		}
		return nil
	}, reads, up, lag)
	return err
}
