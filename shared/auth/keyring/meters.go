package keyring

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/lectern-dev/lectern/shared/auth"
)

// measure has the figures read when they are collected, so that a request only counts.
func (k *Keyring) measure(provider metric.MeterProvider, layers map[string]*auth.Tally) (metric.Registration, error) {
	if provider == nil {
		provider = noop.NewMeterProvider()
	}
	meter := provider.Meter("github.com/lectern-dev/lectern/shared/auth")
	lookups, err1 := meter.Int64ObservableCounter("lectern.key.lookups",
		metric.WithDescription("Look-ups of API keys, by the layer that was asked and how it answered."), metric.WithUnit("{lookup}"))
	limited, err2 := meter.Int64ObservableCounter("lectern.rate.limited",
		metric.WithDescription("Requests that were over their rate."), metric.WithUnit("{request}"))
	up, err3 := meter.Int64ObservableGauge("lectern.redis.up",
		metric.WithDescription("1 when Redis answers, 0 when it is left alone."))
	told, err4 := meter.Int64ObservableGauge("lectern.key.changes.told",
		metric.WithDescription("1 while the keys' database tells which keys change, 0 while each key in use is asked for anew."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}

	type series struct {
		tally              *auth.Tally
		hits, misses, errs metric.ObserveOption
	}
	var all []series
	for layer, tally := range layers {
		of := func(outcome string) metric.ObserveOption {
			return metric.WithAttributeSet(attribute.NewSet(attribute.String("layer", layer), attribute.String("outcome", outcome)))
		}
		all = append(all, series{tally, of("hit"), of("miss"), of("error")})
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, s := range all {
			hits, misses, faults := s.tally.Counts()
			o.ObserveInt64(lookups, hits, s.hits)
			o.ObserveInt64(lookups, misses, s.misses)
			o.ObserveInt64(lookups, faults, s.errs)
		}
		o.ObserveInt64(limited, k.Limiter.Refused())
		o.ObserveInt64(told, one(k.Verifier.Told()))
		if k.Redis != nil {
			o.ObserveInt64(up, one(k.Redis.Up()))
		}
		return nil
	}, lookups, limited, told, up)
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
