package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/contrib/instrumentation/runtime"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
)

// newMeterProvider returns a provider whose instruments are shown by registry, with the metrics of the process and of
// the Go runtime. OpenTelemetry's instrumentation provides the metrics of the runtime. Prometheus' own collector would
// show the same metrics again under other names.
func newMeterProvider(registry *prometheus.Registry, res *resource.Resource) (*sdkmetric.MeterProvider, error) {
	if err := registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})); err != nil {
		return nil, err
	}
	reader, err := otelprometheus.New(
		otelprometheus.WithRegisterer(registry),
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	provider := sdkmetric.NewMeterProvider(
		sdkmetric.WithResource(res),
		sdkmetric.WithReader(reader),
		sdkmetric.WithView(histogramBounds),
		sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter))
	if err := runtime.Start(runtime.WithMeterProvider(provider)); err != nil {
		return nil, err
	}
	return provider, nil
}

// histogramBounds is a view that sets the bounds of every histogram by its unit: times, bytes, counts. Times go from a
// cached key to a long export; the SDK's default bounds are for milliseconds. There are few bounds, because each bound
// is a series for each set of attributes.
func histogramBounds(i sdkmetric.Instrument) (sdkmetric.Stream, bool) {
	if i.Kind != sdkmetric.InstrumentKindHistogram {
		return sdkmetric.Stream{}, false
	}
	seconds := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}
	var bounds []float64
	switch i.Unit {
	case "s":
		bounds = seconds
	case "ms":
		for _, s := range seconds {
			bounds = append(bounds, s*1000)
		}
	case "By":
		bounds = []float64{256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 16 << 20, 256 << 20}
	default:
		bounds = []float64{1, 10, 100, 1000, 10_000, 100_000, 1_000_000}
	}
	return sdkmetric.Stream{
		Name:        i.Name,
		Description: i.Description,
		Unit:        i.Unit,
		Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: bounds, NoMinMax: true},
	}, true
}
