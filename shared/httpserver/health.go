package httpserver

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/telemetry"
	"github.com/lectern-dev/lectern/shared/telemetry/untraced"
)

// Check asks whether something that the service needs can be reached.
type Check struct {
	// Name is part of the answer to requests for readiness: "postgres", "redis". It is never the name of a host.
	Name string
	// Required makes the service not ready while the check fails. Others are only shown.
	Required bool
	// Probe returns nil when all is well. It heeds its context, which ends after [ProbeTimeout].
	Probe func(context.Context) error
}

const (
	// ProbeTimeout is how long a check may take.
	ProbeTimeout = 2 * time.Second
	// probeEvery is how long a result holds, so that asking often costs nothing.
	probeEvery = 500 * time.Millisecond
)

// health answers /healthz and /readyz.
type health struct {
	checks   []Check
	draining *atomic.Bool
	log      *slog.Logger
	now      func() time.Time

	mu      sync.Mutex
	asked   time.Time
	results map[string]bool // by name; true is well
	ready   bool
}

// readiness is the body of /readyz.
type readiness struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks"`
}

// alive reports that the process answers. It checks nothing else: a restart does not help a service whose database
// is down.
func (h *health) alive(w http.ResponseWriter, _ *http.Request) error {
	return writeStatus(w, http.StatusOK, map[string]string{"status": "ok"})
}

// isReady reports whether requests should be sent here, and what each check found.
func (h *health) isReady(w http.ResponseWriter, r *http.Request) error {
	results, ready := h.probe(r.Context())
	body := readiness{Status: "ready", Checks: make(map[string]string, len(results))}
	for name, well := range results {
		body.Checks[name] = "ok"
		if !well {
			body.Checks[name] = "failing"
		}
	}
	status := http.StatusOK
	if !ready {
		status, body.Status = http.StatusServiceUnavailable, "not ready"
	}
	if h.draining.Load() {
		status, body.Status = http.StatusServiceUnavailable, "draining"
	}
	return writeStatus(w, status, body)
}

// probe runs all checks at once, or returns what they found a moment ago.
func (h *health) probe(ctx context.Context) (map[string]bool, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	if h.results != nil && now.Sub(h.asked) < probeEvery {
		return h.results, h.ready
	}
	// Others wait for this result too, so it does not hang on one client's patience.
	ctx, cancel := context.WithTimeout(untraced.Context(context.WithoutCancel(ctx)), ProbeTimeout)
	defer cancel()
	errs := make([]error, len(h.checks))
	var running sync.WaitGroup
	for i, check := range h.checks {
		running.Go(func() { errs[i] = check.Probe(ctx) })
	}
	running.Wait()

	results, ready := make(map[string]bool, len(h.checks)), true
	for i, check := range h.checks {
		well := errs[i] == nil
		results[check.Name] = well
		ready = ready && (well || !check.Required)
		if before, seen := h.results[check.Name]; before != well && (seen || !well) {
			h.logChange(ctx, check, errs[i])
		}
	}
	h.asked, h.results, h.ready = h.now(), results, ready
	return results, ready
}

// logChange logs that a check began or ceased to fail: once, and not at each probe.
func (h *health) logChange(ctx context.Context, check Check, err error) {
	attrs := []slog.Attr{slog.String("check", check.Name), slog.Bool("required", check.Required)}
	if err != nil {
		h.log.LogAttrs(ctx, slog.LevelWarn, "check fails", append(attrs, slog.Any("error", err))...)
		return
	}
	h.log.LogAttrs(ctx, slog.LevelInfo, "check is well again", attrs...)
}

func writeStatus(w http.ResponseWriter, status int, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may have disconnected
	return nil
}

// Operational returns a handler of /healthz, /readyz and /metrics, for a program that serves nothing else. They are
// those that [New] adds to a service's internal paths.
func Operational(t *telemetry.Telemetry, checks ...Check) http.Handler {
	rt := httpapi.NewRouter()
	addOperational(rt, &health{checks: checks, draining: new(atomic.Bool), log: t.Logger, now: time.Now}, t.MetricsHandler(), false)
	return rt
}

// addOperational gives the internal router what every service has.
func addOperational(rt *httpapi.Router, h *health, metrics http.Handler, profiles bool) {
	rt.Get("/healthz", h.alive)
	rt.Get("/readyz", h.isReady)
	rt.Handle("/metrics", map[string]http.Handler{http.MethodGet: metrics})
	if !profiles {
		return
	}
	for name, handler := range map[string]http.HandlerFunc{
		"cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		rt.Handle("/debug/pprof/"+name, map[string]http.Handler{http.MethodGet: handler})
	}
	rt.Handle("/debug/pprof/", map[string]http.Handler{http.MethodGet: http.HandlerFunc(pprof.Index)})
	rt.Handle("/debug/pprof/{profile}", map[string]http.Handler{http.MethodGet: http.HandlerFunc(pprof.Index)})
}

// isOperational reports whether machines request the route every few seconds.
func isOperational(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == "/metrics" || strings.HasPrefix(route, "/debug/")
}
