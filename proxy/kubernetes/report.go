package kubernetes

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/proxy/manifest"
)

// tally holds the numbers of objects in force and of faulty objects, for the metric lectern.proxy.policy.objects.
type tally struct {
	endpoints, credentials int            // in force
	faulty                 map[string]int // by kind
}

// report logs the applied policies, and each fault and warning of an object once until the fault or warning changes.
// report also exports the metrics that [newReport] lists. Only one goroutine may call the methods of a report. Metrics
// may be collected at the same time.
type report struct {
	log      *slog.Logger
	logged   map[manifest.ObjectKey]string // the faults that were logged
	warned   map[manifest.ObjectKey]string
	waiting  string       // the last reason that was logged why there is no policy yet
	since    atomic.Int64 // since when changes cannot be read, in Unix nanoseconds; 0: they can
	changes  metric.Int64Counter
	building metric.Float64Histogram
}

// newReport returns a report that has these instruments:
//
//	lectern.proxy.policy.objects{kind, state}   objects, in_force or faulty
//	lectern.proxy.policy.behind                 seconds without reading changes; 0: they can be read, or there is no policy yet
//	lectern.proxy.policy.changes                applied policies
//	lectern.proxy.policy.build.duration         seconds to build a policy
func newReport(log *slog.Logger, provider metric.MeterProvider, s *Source) (*report, error) {
	r := &report{log: log, logged: map[manifest.ObjectKey]string{}, warned: map[manifest.ObjectKey]string{}}
	meter := provider.Meter("github.com/lectern-dev/lectern/proxy/kubernetes")
	var err error
	if r.changes, err = meter.Int64Counter("lectern.proxy.policy.changes",
		metric.WithDescription("Policies that were applied.")); err != nil {
		return nil, err
	}
	if r.building, err = meter.Float64Histogram("lectern.proxy.policy.build.duration", metric.WithUnit("s"),
		metric.WithDescription("Time to build a policy from all objects."),
		metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1)); err != nil {
		return nil, err
	}
	if _, err = meter.Float64ObservableGauge("lectern.proxy.policy.behind", metric.WithUnit("s"),
		metric.WithDescription("For how long changes in the cluster could not be read. The last policy stays in force. 0: they can."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			behind := 0.0
			if since := r.since.Load(); since != 0 {
				behind = time.Since(time.Unix(0, since)).Seconds()
			}
			o.Observe(behind)
			return nil
		})); err != nil {
		return nil, err
	}
	_, err = meter.Int64ObservableGauge("lectern.proxy.policy.objects",
		metric.WithDescription("Objects by kind and state: in_force (endpoints and credentials), or wholly or partly faulty."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			t := s.tally.Load()
			observe := func(kind, state string, n int) {
				o.Observe(int64(n), metric.WithAttributes(attribute.String("kind", kind), attribute.String("state", state)))
			}
			observe("ProxyEndpoint", "in_force", t.endpoints)
			observe("Credential", "in_force", t.credentials)
			for _, kind := range kinds {
				observe(kind, "faulty", t.faulty[kind])
			}
			return nil
		}))
	return r, err
}

// trouble logs, once, that changes in the cluster cannot be read because of err, or can be read again if err is nil.
// The argument loaded reports whether a policy is in force. Until then, trouble logs each new reason.
func (r *report) trouble(ctx context.Context, err error, loaded bool) {
	began := r.since.Load()
	switch {
	case err != nil && !loaded && err.Error() == r.waiting: // said already
	case err != nil && !loaded:
		r.waiting = err.Error()
		r.log.LogAttrs(ctx, slog.LevelWarn, "policy: there is none yet", slog.String("error", err.Error()))
	case err != nil && began == 0:
		r.since.Store(time.Now().UnixNano())
		r.log.LogAttrs(ctx, slog.LevelWarn, "policy: changes in the cluster cannot be read; the last policy stays in force", slog.String("error", err.Error()))
	case err == nil && began != 0:
		r.since.Store(0)
		r.log.LogAttrs(ctx, slog.LevelInfo, "policy: changes in the cluster can be read again",
			slog.Duration("after", time.Since(time.Unix(0, began)).Round(time.Millisecond)))
	}
}

// objects logs new faults, ended faults and new warnings of objects, and counts the faulty objects of each kind in t.
func (r *report) objects(ctx context.Context, t *tally, faults, warnings []*manifest.Fault) {
	wrong := reasons(faults)
	for key := range wrong {
		t.faulty[key.Kind]++
	}
	r.logNew(ctx, slog.LevelWarn, "policy: an object is faulty", r.logged, wrong)
	for key := range r.logged {
		if wrong[key] == "" {
			r.log.LogAttrs(ctx, slog.LevelInfo, "policy: an object is no longer faulty", name(key)...)
		}
	}
	r.logged = wrong
	warned := reasons(warnings)
	r.logNew(ctx, slog.LevelWarn, "policy: an object is in force, but probably not as it was meant", r.warned, warned)
	r.warned = warned
}

// logNew logs each reason in now that differs from the reason in before, in the order of the objects' names.
func (r *report) logNew(ctx context.Context, level slog.Level, message string, before, now map[manifest.ObjectKey]string) {
	var keys []manifest.ObjectKey
	for key, why := range now {
		if before[key] != why {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b manifest.ObjectKey) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, key := range keys {
		r.log.LogAttrs(ctx, level, message, append(name(key), slog.String("reason", now[key]))...)
	}
}

// replaced logs and counts that a policy was applied. took is how long the build of the policy took.
func (r *report) replaced(ctx context.Context, t *tally, took time.Duration) {
	r.changes.Add(ctx, 1)
	r.building.Record(ctx, took.Seconds())
	faulty := 0
	for _, n := range t.faulty {
		faulty += n
	}
	r.log.LogAttrs(ctx, slog.LevelInfo, "policy in force", slog.Int("endpoints", t.endpoints), slog.Int("credentials", t.credentials),
		slog.Int("faulty", faulty), slog.Duration("took", took))
}

// reasons returns the reasons of each object's faults as one text.
func reasons(faults []*manifest.Fault) map[manifest.ObjectKey]string {
	all := map[manifest.ObjectKey]string{}
	for _, f := range faults {
		if all[f.Of] != "" {
			all[f.Of] += "; "
		}
		all[f.Of] += f.Reason
	}
	return all
}

func name(key manifest.ObjectKey) []slog.Attr {
	return []slog.Attr{slog.String("kind", key.Kind), slog.String("namespace", key.Namespace), slog.String("name", key.Name)}
}
