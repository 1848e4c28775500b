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
//	lectern.database.joined{db.client.connection.pool.name}   statements that went over another one's connection
//
// The first are all 0 where tables are not distributed.
func (p *Pool) measure(provider metric.MeterProvider) error {
	m := provider.Meter("github.com/lectern-dev/lectern/shared/pgdb")
	cells, err := m.Int64ObservableGauge("lectern.database.cells",
		metric.WithDescription("Workers of a distributed database that have projects, by how they do; 0 where tables are not distributed."))
	if err != nil {
		return err
	}
	joined, err := m.Int64ObservableCounter("lectern.database.joined", metric.WithUnit("{statement}"),
		metric.WithDescription("Statements that went over another one's connection, in one round trip with it."))
	if err != nil {
		return err
	}
	pool := metric.WithAttributeSet(attribute.NewSet(semconv.DBClientConnectionPoolName(p.options.Name)))
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
		o.ObserveInt64(joined, p.briefs.joined.Load(), pool)
		return nil
	}, cells, joined)
	return err
}
