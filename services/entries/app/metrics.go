package app

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/services/entries/internal/watch"
)

// measureFeed registers the metrics lectern.feed.waiting and lectern.feed.looks of the change feed. The values come
// from waiting.
func measureFeed(provider metric.MeterProvider, waiting *watch.Watch) error {
	meter := provider.Meter("github.com/lectern-dev/lectern/services/entries")
	var errs [2]error
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
	return errors.Join(errs[:]...)
}
