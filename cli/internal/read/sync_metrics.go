package read

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/shutdown"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// metricsFlag is the flag with the address at which a sync serves its metrics and health.
type metricsFlag struct {
	MetricsAddress string `type:"address" env:"LECTERN_METRICS_ADDRESS" help:"Serve /metrics (Prometheus), /healthz and /readyz at this address, such as :9090. Default: nowhere." placeholder:"HOST:PORT"`
}

// syncMetrics has the metrics and the health of a sync, for Prometheus and the kubelet. The methods of syncMetrics
// may be called concurrently, except close.
type syncMetrics struct {
	now   func() time.Time
	parts shutdown.Stack

	mu       sync.Mutex
	progress copies.Progress
	batches  bool      // one was committed at least, so progress is known
	current  time.Time // when the copy last had all changes; the start of the process before that
	began    time.Time // the start of the process
	// apiFailures and destinationFailures count the failed attempts after which the sync tried again.
	apiFailures, destinationFailures int64
	failing                          time.Time // since when the destination has failed; zero if its last batch was committed
	stopped                          bool      // the receiver has answered 410
}

// serve returns the metrics of a sync, and serves the metrics if --metrics-address is set. The caller must call
// close.
func (f metricsFlag) serve(s *shell.Session, notes io.Writer) (*syncMetrics, error) {
	m := &syncMetrics{now: s.Now, current: s.Now(), began: s.Now()}
	if f.MetricsAddress == "" {
		return m, nil
	}
	// The command has lines of its own, so the log of the library has nowhere to go.
	t, err := telemetry.Start(s.Context, telemetry.Options{Service: "lectern sync", LogOutput: io.Discard})
	if err != nil {
		return nil, err
	}
	m.parts.Add(t.Shutdown)
	if err := m.measure(t.MeterProvider); err != nil {
		m.close()
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(s.Context, "tcp", f.MetricsAddress)
	if err != nil {
		m.close()
		return nil, fmt.Errorf("--metrics-address: %w", err)
	}
	server := &http.Server{
		Handler:           httpserver.Operational(t, httpserver.Check{Name: "copied", Required: true, Probe: m.copied}),
		ReadHeaderTimeout: 5 * time.Second,
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintf(notes, "lectern: the metrics are no longer served: %s\n", shell.OneLine(err))
		}
	}()
	m.parts.AddFunc(func() { _ = server.Close(); <-ended })
	return m, nil
}

// close stops the server of the metrics. close may be called more than once.
func (m *syncMetrics) close() { _ = m.parts.Stop(shutdown.Timeout) }

// copied is the check for /readyz. copied returns an error until the run has committed its first batch, because the
// API and the destination have then both worked. Later faults are for alerts, because neither a restart nor an
// unready pod would help.
func (m *syncMetrics) copied(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.batches {
		return errors.New("no batch has been committed yet")
	}
	return nil
}

// show records the progress of the run. The run calls show after each committed batch.
func (m *syncMetrics) show(p copies.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress, m.batches, m.failing = p, true, time.Time{}
	if p.Current {
		m.current = m.now()
	}
}

// apiFailed counts a request to the API that failed and is sent again.
func (m *syncMetrics) apiFailed(error, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apiFailures++
}

// destinationFailed counts a fault of the destination. After such a fault, the run opens the destination again.
func (m *syncMetrics) destinationFailed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.destinationFailures++
	if m.failing.IsZero() {
		m.failing = m.now()
	}
}

// refused records that the receiver answered 410, so the run sends no more changes.
func (m *syncMetrics) refused() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
}

// measure registers the metrics at provider. Each metric is computed when it is read, so the time since the copy was
// current grows even without new batches.
func (m *syncMetrics) measure(provider metric.MeterProvider) error {
	meter := provider.Meter("github.com/lectern-dev/lectern/cli")
	distance, err1 := meter.Int64ObservableGauge("lectern.sync.distance", metric.WithUnit("{number}"),
		metric.WithDescription("From the copy's last change to the project's newest, in change numbers, which are about microseconds of the source's clock. Not reported before the first batch."))
	since, err2 := meter.Float64ObservableGauge("lectern.sync.since_current", metric.WithUnit("s"),
		metric.WithDescription("Time since the copy last had all changes, or since the start of the process if it never had."))
	changes, err3 := meter.Int64ObservableCounter("lectern.sync.changes", metric.WithUnit("{change}"),
		metric.WithDescription("Changes that were committed to the copy."))
	size, err4 := meter.Int64ObservableCounter("lectern.sync.size", metric.WithUnit("By"),
		metric.WithDescription("Size of these changes in the change feed."))
	failures, err5 := meter.Int64ObservableCounter("lectern.sync.failures", metric.WithUnit("{failure}"),
		metric.WithDescription("Requests to the API, or batches of the destination, that failed and were tried again."))
	differences, err6 := meter.Int64ObservableGauge("lectern.sync.differences", metric.WithUnit("{difference}"),
		metric.WithDescription("Differences between the copy and its source that the last verification found and did not mend. Not reported before one."))
	verified, err9 := meter.Float64ObservableGauge("lectern.sync.since_verified", metric.WithUnit("s"),
		metric.WithDescription("Time since the last verification of the copy, or since the start of the process if there was none."))
	failing, err8 := meter.Float64ObservableGauge("lectern.sync.failing", metric.WithUnit("s"),
		metric.WithDescription("Time since the destination began to fail without a success between; 0 while it takes batches."))
	stopped, err7 := meter.Int64ObservableGauge("lectern.sync.stopped", metric.WithUnit("{copy}"),
		metric.WithDescription("1 after the receiver answered 410: nothing is sent until --resume is given."))
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9); err != nil {
		return err
	}
	side := func(name string) metric.MeasurementOption {
		return metric.WithAttributes(attribute.String("side", name))
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if p := m.progress; p.Current {
			o.ObserveInt64(distance, 0)
		} else if m.batches {
			o.ObserveInt64(distance, max(p.LastSeq-p.Seq, 0))
		}
		if v := m.progress.Verified; v.At.IsZero() {
			o.ObserveFloat64(verified, m.now().Sub(m.began).Seconds())
		} else {
			o.ObserveInt64(differences, v.Differences)
			o.ObserveFloat64(verified, m.now().Sub(v.At).Seconds())
		}
		o.ObserveFloat64(since, m.now().Sub(m.current).Seconds())
		o.ObserveInt64(changes, m.progress.Changes)
		o.ObserveInt64(size, m.progress.Bytes)
		o.ObserveInt64(failures, m.apiFailures, side("api"))
		o.ObserveInt64(failures, m.destinationFailures, side("destination"))
		if m.failing.IsZero() {
			o.ObserveFloat64(failing, 0)
		} else {
			o.ObserveFloat64(failing, m.now().Sub(m.failing).Seconds())
		}
		if m.stopped {
			o.ObserveInt64(stopped, 1)
		} else {
			o.ObserveInt64(stopped, 0)
		}
		return nil
	}, distance, since, changes, size, failures, differences, verified, failing, stopped)
	return err
}
