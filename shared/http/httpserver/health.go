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

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/telemetry"
	"github.com/lectern-dev/lectern/shared/telemetry/untraced"
)

// Check asks whether something that the service needs can be reached.
type Check struct {
	// Name is part of the answer to requests for readiness: "postgres", "redis". It is never the name of a host.
	Name string
	// Required makes the service not ready while the check fails. Others are only shown.
	Required bool
	// Probe returns nil when all is well. It heeds its context, which ends after [ProbeTimeout]. The log has its error, and
	// the answer to requests for readiness has the kind of the error, or the text of a [Cause].
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
	failing map[string]*failure // by the name of the check; nil before the first probe
	ready   bool
}

// failure is a check that fails.
type failure struct {
	cause  string
	logged time.Time     // the last line of the log
	pause  time.Duration // until the next line
}

// The pauses between two lines of the log on one failure: each is twice the one before.
const (
	firstPause = time.Minute
	lastPause  = time.Hour
)

// readiness is the body of /readyz.
type readiness struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks"`
	Causes map[string]string `json:"causes,omitempty"` // of the failing checks
}

// alive reports that the process answers. It checks nothing else: a restart does not help a service whose database
// is down.
func (h *health) alive(w http.ResponseWriter, _ *http.Request) error {
	return writeStatus(w, http.StatusOK, map[string]string{"status": "ok"})
}

// isReady reports whether requests should be sent here, what each check found, and why some fail.
func (h *health) isReady(w http.ResponseWriter, r *http.Request) error {
	causes, ready := h.probe(r.Context())
	body := readiness{Status: "ready", Checks: make(map[string]string, len(h.checks)), Causes: causes}
	for _, check := range h.checks {
		body.Checks[check.Name] = "ok"
		if causes[check.Name] != "" {
			body.Checks[check.Name] = "failing"
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

// probe runs all checks at once, or uses what they found a moment ago. It returns the causes of those that fail, by name.
func (h *health) probe(ctx context.Context) (causes map[string]string, ready bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failing == nil || h.now().Sub(h.asked) >= probeEvery {
		h.ask(ctx)
	}
	causes = make(map[string]string, len(h.failing))
	for name, f := range h.failing {
		causes[name] = f.cause
	}
	return causes, h.ready
}

// ask runs all checks at once.
func (h *health) ask(ctx context.Context) {
	// Others wait for this result too, so it does not hang on one client's patience.
	ctx, cancel := context.WithTimeout(untraced.Context(context.WithoutCancel(ctx)), ProbeTimeout)
	defer cancel()
	errs := make([]error, len(h.checks))
	var running sync.WaitGroup
	for i, check := range h.checks {
		running.Go(func() { errs[i] = check.Probe(ctx) })
	}
	running.Wait()

	now := h.now()
	failing, ready := make(map[string]*failure, len(h.failing)), true
	for i, check := range h.checks {
		before := h.failing[check.Name]
		if errs[i] != nil {
			ready = ready && !check.Required
			failing[check.Name] = h.logFailure(ctx, now, check, before, errs[i])
		} else if before != nil {
			h.log.LogAttrs(ctx, slog.LevelInfo, "check passes again", slog.String("check", check.Name), slog.Bool("required", check.Required))
		}
	}
	h.asked, h.failing, h.ready = now, failing, ready
}

// logFailure logs that a check fails: at once for a new failure or another cause, and after longer and longer pauses while it lasts.
func (h *health) logFailure(ctx context.Context, now time.Time, check Check, before *failure, err error) *failure {
	f := &failure{cause: causeOf(err), logged: now, pause: firstPause}
	if before != nil && before.cause == f.cause {
		if now.Sub(before.logged) < before.pause {
			return before
		}
		f.pause = min(2*before.pause, lastPause)
	}
	h.log.LogAttrs(ctx, slog.LevelWarn, "check fails", slog.String("check", check.Name), slog.Bool("required", check.Required),
		slog.String("cause", f.cause), slog.Any("error", err))
	return f
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
