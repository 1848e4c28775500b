package fairshare

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// Measure has provider collect
//
//	lectern.large_lists           lists of many chunks that are being read
//	lectern.large_lists.waiting   of these, those that wait for their turn
//	lectern.large_lists.refused   those answered 429, one too many of their project
//
// until the registration is ended.
func (s *Share) Measure(provider metric.MeterProvider) (metric.Registration, error) {
	meter := provider.Meter("github.com/lectern-dev/lectern/shared/fairshare")
	lists, err1 := meter.Int64ObservableGauge("lectern.large_lists",
		metric.WithDescription("Lists of many chunks that are being read."))
	waiting, err2 := meter.Int64ObservableGauge("lectern.large_lists.waiting",
		metric.WithDescription("Lists of many chunks that wait for their turn."))
	refused, err3 := meter.Int64ObservableCounter("lectern.large_lists.refused",
		metric.WithDescription("Lists of many chunks that were one too many of their project."), metric.WithUnit("{request}"))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		l, w, r := s.Counts()
		o.ObserveInt64(lists, l)
		o.ObserveInt64(waiting, w)
		o.ObserveInt64(refused, r)
		return nil
	}, lists, waiting, refused)
}
