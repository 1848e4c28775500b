package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/telemetry"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts telemetry with the settings in environ, until the test ends.
func start(t *testing.T, environ map[string]string, out io.Writer, spans sdktrace.SpanExporter) *telemetry.Telemetry {
	t.Helper()
	for name, value := range environ {
		t.Setenv(name, value) // OpenTelemetry's SDK reads the process's environment
	}
	var c telemetry.Config
	if err := config.Load(&c, environ); err != nil {
		t.Fatal(err)
	}
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "svc", Version: "v1.2.3", Config: c, LogOutput: out, SpanExporter: spans})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.Background()) })
	return tel
}

// output is a log that counts its writes.
type output struct {
	logtest.Buffer
	writes atomic.Int64
}

func (o *output) Write(p []byte) (int, error) {
	o.writes.Add(1)
	return o.Buffer.Write(p)
}

func TestLogWaitsButLosesNothing(t *testing.T) {
	out := &output{}
	tel := start(t, nil, out, nil)
	const lines = 10_000
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range lines / 10 {
				tel.Logger.Info("one", "key", config.NewSecret("canary"))
			}
		})
	}
	all.Wait()
	if err := tel.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	text, writes := out.String(), out.writes.Load()
	if got := strings.Count(text, "\n"); got != lines {
		t.Errorf("%d lines came out, want %d", got, lines)
	}
	if writes > lines/20 {
		t.Errorf("%d lines took %d writes", lines, writes)
	}
	for line := range strings.Lines(text) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || m["service"] != "svc" || m["key"] != "[redacted]" {
			t.Fatalf("line %s: %v", line, err)
		}
		if at, err := time.Parse(time.RFC3339Nano, m["time"].(string)); err != nil || at.Location() != time.UTC {
			t.Fatalf("time %v is not in UTC: %v", m["time"], err)
		}
	}
	tel.Logger.Info("after")
	if text := out.String(); !strings.Contains(text, `"after"`) {
		t.Error("after Shutdown a line waits")
	}
}

func TestLogDelay(t *testing.T) {
	out := &output{}
	tel := start(t, nil, out, nil)
	tel.Logger.Info("waits")
	if text := out.String(); text != "" {
		t.Errorf("a line at info did not wait: %s", text)
	}
	eventually.True(t, "the line that waits", func() bool { text := out.String(); return strings.Contains(text, "waits") })
	tel.Logger.Info("before")
	tel.Logger.Warn("trouble")
	if text := out.String(); !strings.Contains(text, "before") || !strings.Contains(text, "trouble") {
		t.Errorf("a warning waits: %s", text)
	}
}

func TestLogLevelAndFormat(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   map[string]string
		want string // regular expression for the whole log
	}{
		{"defaults", nil, `^\{"time":"[^"]*Z","level":"INFO","msg":"info","service":"svc"\}\n\{.*"msg":"warn".*\}\n$`},
		{"warn", map[string]string{"LOG_LEVEL": "warn"}, `^\{.*"msg":"warn".*\}\n$`},
		{"text", map[string]string{"LOG_FORMAT": "text", "LOG_LEVEL": "WARN"}, `^time=\S*Z level=WARN msg=warn service=svc\n$`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := &output{}
			tel := start(t, tc.in, out, nil)
			tel.Logger.Debug("debug")
			tel.Logger.Info("info")
			tel.Logger.Warn("warn")
			if text := out.String(); !regexp.MustCompile(tc.want).MatchString(text) {
				t.Errorf("the log is %s", text)
			}
		})
	}
}

func TestTracing(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   map[string]string
		want bool
	}{
		{"nothing set", nil, false},
		{"endpoint", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, true},
		{"gRPC", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, true},
		{"exporter", map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true},
		{"console", map[string]string{"OTEL_TRACES_EXPORTER": "console"}, true},
		{"none wins over endpoint", map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tel := start(t, tc.in, io.Discard, nil)
			if got := tel.Tracing(); got != tc.want {
				t.Errorf("Tracing() = %v, want %v", got, tc.want)
			}
			_, span := tel.TracerProvider.Tracer("t").Start(t.Context(), "s")
			if got := span.IsRecording(); got != tc.want {
				t.Errorf("IsRecording() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSampler(t *testing.T) {
	tel := start(t, map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0", "OTEL_TRACES_EXPORTER": "otlp"}, io.Discard, nil)
	_, span := tel.TracerProvider.Tracer("t").Start(t.Context(), "root")
	if span.SpanContext().IsSampled() {
		t.Error("a root span was kept at a ratio of 0")
	}
	parent := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled, Remote: true,
	}))
	if _, child := tel.TracerProvider.Tracer("t").Start(parent, "child"); !child.SpanContext().IsSampled() {
		t.Error("a child of a span that is kept was not kept")
	}
}

type failingExporter struct{}

func (failingExporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	return errors.New("collector is away")
}
func (failingExporter) Shutdown(context.Context) error { return nil }

func TestExportFaultsAreLoggedSeldom(t *testing.T) {
	out := &output{}
	tel := start(t, nil, out, failingExporter{})
	for range 5 {
		_, span := tel.TracerProvider.Tracer("t").Start(t.Context(), "s")
		span.End()
		if err := tel.TracerProvider.(*sdktrace.TracerProvider).ForceFlush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	text := out.String()
	if got := strings.Count(text, "collector is away"); got != 1 {
		t.Errorf("the fault was logged %d times, want once: %s", got, text)
	}
}

func TestConfigValidate(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   map[string]string
		want string // faulty variable; empty: none
	}{
		{"defaults", nil, ""},
		{"all", map[string]string{
			"LOG_LEVEL": "debug", "LOG_FORMAT": "text", "OTEL_TRACES_EXPORTER": "console",
		}, ""},
		{"level", map[string]string{"LOG_LEVEL": "loud"}, "LOG_LEVEL"},
		{"format", map[string]string{"LOG_FORMAT": "xml"}, "LOG_FORMAT"},
		{"exporter", map[string]string{"OTEL_TRACES_EXPORTER": "jaeger"}, "OTEL_TRACES_EXPORTER"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c telemetry.Config
			err := config.Load(&c, tc.in)
			if tc.in == nil {
				err = config.Load(&c, map[string]string{})
			}
			if (err != nil) != (tc.want != "") || (err != nil && !strings.Contains(err.Error(), "\n  "+tc.want+" is ")) {
				t.Errorf("Load: %v, want a fault of %q", err, tc.want)
			}
			if tc.name == "all" && c.LogLevel != slog.LevelDebug {
				t.Errorf("LOG_LEVEL became %s", c.LogLevel)
			}
		})
	}
}

func TestUnknownProtocol(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
	_, err := telemetry.Start(t.Context(), telemetry.Options{Config: telemetry.Config{TracesExporter: "otlp"}})
	if want := "OTEL_EXPORTER_OTLP_PROTOCOL"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Start with a protocol that does not exist: %v, want an error that names %s", err, want)
	}
}
