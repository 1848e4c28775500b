package telemetry

import (
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/lectern-dev/lectern/shared/config"
)

// Config holds the settings of a service's telemetry. The OTEL_ names have the meaning of OpenTelemetry's
// specification ("Environment Variable Specification"). Its SDK reads the others (headers, certificates, time-outs,
// batch sizes, resource attributes) from the process's environment.
type Config struct {
	// The least severe lines that are logged: debug, info, warn or error.
	LogLevel slog.Level `env:"LOG_LEVEL" envDefault:"info"`

	// How lines are written: json, or text for people.
	LogFormat string `env:"LOG_FORMAT" envDefault:"json"`

	// Where traces go: otlp, console or none. Not set: otlp when one of the two endpoints is set, else none.
	TracesExporter string `env:"OTEL_TRACES_EXPORTER"`

	// The OTLP endpoint of all signals, a URL such as http://collector:4318. Traces go to /v1/traces below it.
	OTLPEndpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`

	// The OTLP endpoint of traces, a whole URL. It replaces the one of all signals.
	OTLPTracesEndpoint string `env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"`

	// How OTLP travels: http/protobuf or grpc.
	OTLPProtocol string `env:"OTEL_EXPORTER_OTLP_PROTOCOL" envDefault:"http/protobuf"`

	// Which traces are recorded: always_on, always_off, traceidratio, or one of these with the prefix parentbased_,
	// which follows the caller's decision.
	Sampler string `env:"OTEL_TRACES_SAMPLER" envDefault:"parentbased_always_on"`

	// The part of traces that traceidratio records, 0 to 1. Not set: 1.
	SamplerArgument string `env:"OTEL_TRACES_SAMPLER_ARG"`

	// Turns traces off, even if other settings turn them on.
	Disabled bool `env:"OTEL_SDK_DISABLED" envDefault:"false"`
}

// Validate reports the values that are not allowed.
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
	oneOf("OTEL_EXPORTER_OTLP_PROTOCOL", c.OTLPProtocol, "http/protobuf", "grpc")
	oneOf("OTEL_TRACES_SAMPLER", strings.ToLower(c.Sampler), "always_on", "always_off", "traceidratio",
		"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio")
	if c.SamplerArgument != "" && strings.Contains(c.Sampler, "ratio") {
		if ratio, err := strconv.ParseFloat(c.SamplerArgument, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			faults = append(faults, config.Invalid("OTEL_TRACES_SAMPLER_ARG", c.SamplerArgument, "a number from 0 to 1"))
		}
	}
	return errors.Join(faults...)
}

// tracing reports whether spans are recorded at all.
func (c Config) tracing() bool {
	if c.Disabled || c.TracesExporter == "none" {
		return false
	}
	return c.TracesExporter != "" || c.OTLPEndpoint != "" || c.OTLPTracesEndpoint != ""
}
