package app

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/services/entries/internal/watch"
)

// losses counts the stretches of numbers that projects have lost, and logs each.
type losses struct {
	log   *slog.Logger
	count atomic.Int64
}

// note is a [store.Lost].
func (l *losses) note(ctx context.Context, projectID string, after, until int64) {
	l.count.Add(1)
	l.log.WarnContext(ctx, "the database was restored: changes of a project are lost",
		slog.String("project", projectID), slog.Int64("after", after), slog.Int64("until", until))
}

// measureFeed registers the metrics lectern.feed.waiting, lectern.feed.looks and lectern.feed.lost of the change feed.
// The values come from waiting and lost.
func measureFeed(provider metric.MeterProvider, waiting *watch.Watch, lost *losses) error {
	meter := provider.Meter("github.com/lectern-dev/lectern/services/entries")
	var errs [3]error
	_, errs[0] = meter.Int64ObservableUpDownCounter("lectern.feed.waiting",
		metric.WithUnit("{request}"), metric.WithDescription("Requests of the change feed that wait for changes."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(waiting.Waiters()))
			return nil
		}))
	_, errs[1] = meter.Int64ObservableCounter("lectern.feed.looks",
		metric.WithUnit("{look}"), metric.WithDescription("Looks at the counters of projects for which requests wait."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(waiting.Looks())
			return nil
		}))
	_, errs[2] = meter.Int64ObservableCounter("lectern.feed.lost",
		metric.WithUnit("{stretch}"), metric.WithDescription("Stretches of numbers that projects have lost, because the database was restored."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(lost.count.Load())
			return nil
		}))
	return errors.Join(errs[:]...)
}
