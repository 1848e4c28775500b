package httpserver

import (
	"cmp"
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

// Check tests for /readyz whether a dependency of the service, such as its database, can be reached.
type Check struct {
	// Name is the name of the check in the answer of /readyz and in the log, such as "postgres". Name is never the name
	// of a host.
	Name string
	// Required makes the service not ready while the check fails. A failure of a check that is not required is only
	// shown and logged.
	Required bool
	// Probe returns nil if the dependency works, and returns when its context ends, after 2 s. The path
	// /readyz shows the kind of the error, or the text of a [Cause]. Only the log shows the error itself.
	Probe func(context.Context) error
}

const (
	// probeTimeout is how long a check may take.
	probeTimeout = 2 * time.Second
	// probeEvery is how long the result of a probe is used again, so that frequent requests for /readyz cost nothing.
	probeEvery = 500 * time.Millisecond
)

// health answers /healthz and /readyz, and keeps the last result of each check.
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

// failure is the state of one failing check: its cause, and when the log had its last line and may have the next.
type failure struct {
	cause  string
	logged time.Time     // the last line of the log
	pause  time.Duration // until the next line
}

// firstPause and lastPause are the shortest and the longest pause before the log repeats that a check fails for the
// same cause. The pause doubles with each repetition, up to lastPause.
const (
	firstPause = time.Minute
	lastPause  = time.Hour
)

// readiness is the JSON body of the answer to /readyz: the status, and the result of each check by name, "ok" or
// "failing".
type readiness struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks"`
	Causes map[string]string `json:"causes,omitempty"` // of the failing checks
}

// alive answers /healthz with 200 and runs no check, because a restart does not help a service whose database is down.
func (h *health) alive(w http.ResponseWriter, _ *http.Request) error {
	return writeStatus(w, http.StatusOK, map[string]string{"status": "ok"})
}

// isReady answers /readyz: 200 if requests should be sent to this process, else 503. The body has the result of each
// check, and the causes of the failing checks.
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

// probe returns the causes of the failing checks by name, and whether all required checks pass. probe runs the checks
// unless the last results are younger than probeEvery.
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

// ask runs all checks at the same time, keeps the results, and logs failures and recoveries. A failure that lasts is
// logged again only from time to time.
func (h *health) ask(ctx context.Context) {
	// Other requests wait for this result too, so the probe continues if this request's client disconnects.
	ctx, cancel := context.WithTimeout(untraced.Context(context.WithoutCancel(ctx)), probeTimeout)
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

// logFailure logs that a check fails, if the failure is new, has another cause, or was last logged long enough ago. The
// result is the failure to keep.
func (h *health) logFailure(ctx context.Context, now time.Time, check Check, before *failure, err error) *failure {
	f := &failure{cause: cmp.Or(CauseOf(err), "see the log"), logged: now, pause: firstPause}
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

// Operational returns a handler of /healthz, /readyz and /metrics, for a program that serves nothing else. [New] adds
// the same paths to a service's internal listener.
func Operational(t *telemetry.Telemetry, checks ...Check) http.Handler {
	rt := httpapi.NewRouter()
	addOperational(rt, &health{checks: checks, draining: new(atomic.Bool), log: t.Logger, now: time.Now}, t.MetricsHandler(), false)
	return rt
}

// addOperational adds /healthz, /readyz and /metrics to a router, and /debug/pprof/ if profiles is set.
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

// isOperational reports whether route is for probes, scrapers or profilers. Machines request most of these routes every
// few seconds, so their requests are neither traced nor logged.
func isOperational(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == "/metrics" || strings.HasPrefix(route, "/debug/")
}
