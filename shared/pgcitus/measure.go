package pgcitus

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
)

// measure registers the gauge
//
//	lectern.citus.workers{db.client.connection.pool.name, state=serving|down|hanging}   workers with projects, by state
func (g *gate) measure(provider metric.MeterProvider) (metric.Registration, error) {
	if provider == nil {
		return nil, nil
	}
	m := provider.Meter("github.com/lectern-dev/lectern/shared/pgcitus")
	workers, err := m.Int64ObservableGauge("lectern.citus.workers",
		metric.WithDescription("Citus workers that have projects, by state."))
	if err != nil {
		return nil, err
	}
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		counts := map[state]int64{}
		if at := g.placement.Load(); at != nil {
			for _, w := range at.workers {
				counts[w.current()]++
			}
		}
		for _, s := range []state{serving, down, hanging} {
			o.ObserveInt64(workers, counts[s], metric.WithAttributes(
				semconv.DBClientConnectionPoolName(g.options.Name), attribute.String("state", string(s))))
		}
		return nil
	}, workers)
}
