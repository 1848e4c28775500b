package exportlimit

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// Measure registers
//
//	lectern.large_lists           large lists being read
//	lectern.large_lists.waiting   of these, those that wait to run a statement; not the lists that wait for admission
//	lectern.large_lists.refused   lists answered 429, one too many of their project
//
// until the caller ends the registration.
func (l *Limiter) Measure(provider metric.MeterProvider) (metric.Registration, error) {
	meter := provider.Meter("github.com/lectern-dev/lectern/shared/exportlimit")
	lists, err1 := meter.Int64ObservableGauge("lectern.large_lists",
		metric.WithDescription("Lists of several chunks that are being read."))
	waiting, err2 := meter.Int64ObservableGauge("lectern.large_lists.waiting",
		metric.WithDescription("Lists of several chunks that were admitted and wait to run a statement."))
	refused, err3 := meter.Int64ObservableCounter("lectern.large_lists.refused",
		metric.WithDescription("Lists of several chunks that were one too many of their project."), metric.WithUnit("{request}"))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(lists, l.lists.Load())
		o.ObserveInt64(waiting, l.waiting.Load())
		o.ObserveInt64(refused, l.refused.Load())
		return nil
	}, lists, waiting, refused)
}
