package telemetry

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/shared/config"
)

// Config holds the settings of a service's telemetry. The OTEL_ names have the meaning of OpenTelemetry's specification
// ("Environment Variable Specification"). OpenTelemetry's SDK reads its other variables (protocol, sampler, headers,
// certificates, time-outs, batch sizes, resource attributes) from the process's environment.
type Config struct {
	// The least severe lines that are logged: debug, info, warn or error.
	LogLevel slog.Level `env:"LOG_LEVEL" envDefault:"info"`

	// How lines are written: json, or text for people.
	LogFormat string `env:"LOG_FORMAT" envDefault:"json"`

	// Where traces go: otlp, console or none. Not set: otlp when OTEL_EXPORTER_OTLP_ENDPOINT is set, else none.
	TracesExporter string `env:"OTEL_TRACES_EXPORTER"`

	// The OTLP endpoint of all signals, a URL such as http://collector:4318. Traces go to /v1/traces below it.
	OTLPEndpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
}

// Validate reports a LOG_FORMAT or OTEL_TRACES_EXPORTER that is not allowed.
func (c Config) Validate() error {
	var faults []error
	oneOf := func(variable, given string, allowed ...string) {
		if !slices.Contains(allowed, given) {
			faults = append(faults, config.Invalid(variable, given, strings.Join(allowed, ", ")))
		}
	}
	oneOf("LOG_FORMAT", c.LogFormat, "json", "text")
	if c.TracesExporter != "" {
		oneOf("OTEL_TRACES_EXPORTER", c.TracesExporter, "otlp", "console", "none")
	}
	return errors.Join(faults...)
}

// tracing reports whether the service records spans: an exporter or an endpoint is set, and the exporter is not "none".
func (c Config) tracing() bool {
	if c.TracesExporter != "" {
		return c.TracesExporter != "none"
	}
	return c.OTLPEndpoint != ""
}
