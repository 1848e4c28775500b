package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/lectern-dev/lectern/shared/telemetry"
)

// server serves the operator's internal address: /healthz, /readyz, /metrics, and profiles if PPROF is true. It also
// runs in a standby operator, and before the API server answers.
type server struct {
	address string
	http    *http.Server
	filled  atomic.Bool // memory holds all objects
	acting  atomic.Bool // this operator reconciles objects
	ready   func(net.Addr)
}

func newServer(cfg Config, tel *telemetry.Telemetry) *server {
	s := &server{address: cfg.ListenInternal, ready: cfg.Ready}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", tel.MetricsHandler(controllerMetrics{ctrlmetrics.Registry}))
	if cfg.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10}
	return s
}

// follow makes /readyz report on mgr, until ctx ends.
func (s *server) follow(ctx context.Context, mgr ctrl.Manager) {
	go func() { s.filled.Store(mgr.GetCache().WaitForCacheSync(ctx)) }()
	go func() {
		select {
		case <-mgr.Elected():
			s.acting.Store(true)
		case <-ctx.Done():
		}
	}()
}

// serve serves until ctx ends, and then lets requests finish for up to five seconds. It calls Config.Ready when the
// address is open. It returns an error if it cannot listen on LISTEN_INTERNAL, or if a request takes longer than the
// five seconds.
func (s *server) serve(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("cannot listen on %s (LISTEN_INTERNAL): %w", s.address, err)
	}
	if s.ready != nil {
		s.ready(listener.Addr())
	}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		stopped <- s.http.Shutdown(ctx)
	})
	if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.address, err)
	}
	return <-stopped
}

// readyz answers 200 if the cache holds all objects, and otherwise 503. A standby operator with a full cache is ready
// too. The field acting of the answer reports whether this operator reconciles objects, as the leader or without an
// election.
func (s *server) readyz(w http.ResponseWriter, _ *http.Request) {
	status, code, cache := "ready", http.StatusOK, "ok"
	if !s.filled.Load() {
		status, code, cache = "not ready", http.StatusServiceUnavailable, "failing"
	}
	answer(w, code, map[string]any{"status": status, "acting": s.acting.Load(), "checks": map[string]string{"cache": cache}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a failure means that the client disconnected
}

// controllerMetrics gathers the metrics of controller-runtime, without the metrics of the process, which package
// telemetry already exports.
type controllerMetrics struct{ all prometheus.Gatherer }

// Gather returns the metrics of controller-runtime, except the families whose names begin with go_ or process_.
func (m controllerMetrics) Gather() ([]*dto.MetricFamily, error) {
	families, err := m.all.Gather()
	kept := families[:0]
	for _, f := range families {
		if name := f.GetName(); !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			kept = append(kept, f)
		}
	}
	return kept, err
}
