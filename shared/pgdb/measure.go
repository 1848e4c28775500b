package pgdb

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
)

// measure has provider collect
//
//	lectern.database.cells{db.client.connection.pool.name, state=serving|down|hanging}   workers with projects, by how they do
//
// all of which are 0 where tables are not distributed.
func (p *Pool) measure(provider metric.MeterProvider) error {
	m := provider.Meter("github.com/lectern-dev/lectern/shared/pgdb")
	cells, err := m.Int64ObservableGauge("lectern.database.cells",
		metric.WithDescription("Workers of a distributed database that have projects, by how they do; 0 where tables are not distributed."))
	if err != nil {
		return err
	}
	conditions := [...]condition{serving, down, hanging}
	var states [len(conditions)]metric.MeasurementOption
	for i, c := range conditions {
		states[i] = metric.WithAttributeSet(attribute.NewSet(
			semconv.DBClientConnectionPoolName(p.options.Name), attribute.String("state", string(c))))
	}
	p.meters, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		var n [len(conditions)]int64
		if at := p.bulkheads.placement.Load(); at != nil {
			for _, c := range at.cells {
				n[slices.Index(conditions[:], c.does())]++
			}
		}
		for i := range conditions {
			o.ObserveInt64(cells, n[i], states[i])
		}
		return nil
	}, cells)
	return err
}
