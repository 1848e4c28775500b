package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/lectern-dev/lectern/proxy/internal/dial"
	"github.com/lectern-dev/lectern/proxy/internal/forward"
	"github.com/lectern-dev/lectern/proxy/manifest"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/shutdown"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// Source keeps a policy.Store up to date, from a folder of manifests or from a cluster.
type Source interface {
	// Run follows changes until ctx ends.
	Run(ctx context.Context)
	// Healthy returns nil when the policy in force is current, and otherwise the reason why it is not.
	Healthy() error
}

// Gradual is a Source that loads its first policy in Run, so the proxy starts before a policy is in force.
type Gradual interface {
	Source
	// Loaded returns nil once a policy is in force. Until then it returns what the Source waits for, and the proxy is
	// not ready.
	Loaded() error
}

// SourceOptions holds the parts of the proxy that a new Source uses.
type SourceOptions struct {
	// Store is the store that the Source updates.
	Store *policy.Store
	// Log receives the Source's decisions about objects.
	Log *slog.Logger
	// Meter makes the Source's instruments.
	Meter metric.MeterProvider
}

// service is the name of the proxy in logs, spans and metrics.
const service = "proxy"

// Run serves until ctx ends, and then lets the requests in flight finish for up to DRAIN_TIMEOUT. It returns an error
// if a setting is not allowed, or if a manifest of the folder has a fault at the start.
func Run(ctx context.Context, cfg Config) (err error) {
	if err := errors.Join(cfg.Validate(), cfg.Egress.Validate(), cfg.Require("serve")); err != nil {
		return err
	}
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: service, Config: cfg.Telemetry, LogOutput: cfg.LogOutput})
	if err != nil {
		return err
	}
	var parts shutdown.Stack
	defer func() { err = errors.Join(err, parts.Stop(shutdown.Timeout)) }()
	parts.Add(tel.Shutdown)

	store := &policy.Store{}
	pool := dial.NewPool(dial.Options{Guard: cfg.Egress.Guard(), Proxy: cfg.Auth.EgressProxy, Resolver: cfg.Resolver})
	parts.AddFunc(pool.Close)
	o := forward.Options{
		Store: store, Pool: pool, Tracer: tel.TracerProvider, Meter: tel.MeterProvider,
		MaxTemplatedBody: cfg.MaxTemplatedBody, TemplatedMemory: cfg.TemplatedMemory,
		ClientConcurrent: cfg.ClientConcurrent, TotalTimeout: cmp.Or(cfg.TotalTimeout, 15*time.Minute), Stall: cfg.HTTP.WriteTimeout,
	}
	keys, err := openKeys(ctx, cfg, tel, &o)
	if err != nil {
		return err
	}
	if keys != nil {
		parts.Add(keys.Close)
	}
	handler, err := forward.New(o)
	if err != nil {
		return err
	}
	source, err := cfg.open(SourceOptions{Store: store, Log: tel.Logger, Meter: tel.MeterProvider})
	if err != nil {
		return err
	}
	if err := measure(tel.MeterProvider, source); err != nil {
		return err
	}
	parts.Go(source.Run)

	server, err := httpserver.New(httpserver.Options{
		Service: service, Config: cfg.HTTP, Telemetry: tel, Public: routes(handler), Checks: checks(source, keys),
		Refuse: handler.Refuse,
		Plain: http.Header{
			forward.SuccessHeader:     {"false"},
			"X-Content-Type-Options":  {"nosniff"},
			"Content-Security-Policy": {"sandbox"},
		},
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// routes returns the public routes of the proxy, which h serves for all methods. Each route exists twice: under /proxy
// on the API's host, and without /proxy on a host of the proxy's own.
func routes(h http.Handler) *httpapi.Router {
	rt := httpapi.NewRouter()
	for _, path := range []string{"/", "/to/{target...}", "/for/{projectId}/{environment}/to/{target...}"} {
		rt.Any(path, h)
		rt.Any(strings.TrimSuffix("/proxy"+path, "/"), h)
	}
	rt.Connect(h)
	return rt
}

// openKeys opens the store of API keys, and sets o.Keys and, with Redis, o.Rates. It returns nil if no key database is
// configured.
func openKeys(ctx context.Context, cfg Config, tel *telemetry.Telemetry, o *forward.Options) (*authn.Authenticator, error) {
	if cfg.Auth.DatabaseURL.IsZero() {
		return nil, nil
	}
	keys, err := authn.Open(ctx, cfg.Auth, authn.Options{
		Log: tel.Logger, Tracer: tel.TracerProvider, Meter: tel.MeterProvider, Pool: cfg.Pool,
	})
	if err != nil {
		return nil, err
	}
	o.Keys, o.Rates = keys.Guard, keys.Limiter
	return keys, nil
}

// manifestsPoll is how often the proxy checks the folder for changes. A change is in force when its author has switched to the
// browser.
const manifestsPoll = 500 * time.Millisecond

// open returns the source of the policy: c.Source if it is set, and otherwise the folder c.Manifests. The manifests of
// a folder are loaded at once.
func (c Config) open(o SourceOptions) (Source, error) {
	if c.Source != nil {
		return c.Source(o)
	}
	return manifest.NewFolder(c.Manifests, o.Store, manifestsPoll, o.Log)
}

func checks(source Source, keys *authn.Authenticator) []httpserver.Check {
	list := []httpserver.Check{{Name: "policy", Probe: func(context.Context) error { return source.Healthy() }}}
	if gradual, ok := source.(Gradual); ok {
		list = append(list, httpserver.Check{Name: "loaded", Required: true, Probe: func(context.Context) error { return gradual.Loaded() }})
	}
	if keys != nil {
		list = append(list, httpserver.Check{Name: "keys", Probe: keys.Ready})
		if keys.Redis != nil {
			list = append(list, httpserver.Check{Name: "redis", Probe: keys.Redis.Reach})
		}
	}
	return list
}

// measure registers the metric lectern.proxy.policy.current: 1 if the policy in force is current, and otherwise 0.
func measure(provider metric.MeterProvider, source Source) error {
	meter := provider.Meter("github.com/lectern-dev/lectern/proxy")
	_, err := meter.Int64ObservableGauge("lectern.proxy.policy.current",
		metric.WithDescription("1 when the policy in force is current, 0 when an older one is kept."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			current := int64(1)
			if source.Healthy() != nil {
				current = 0
			}
			o.Observe(current)
			return nil
		}))
	return err
}

// Migrate migrates the database of API keys if AUTH_MIGRATE_DATABASE_URL is set, and otherwise does nothing. The proxy
// has no database of its own.
func Migrate(ctx context.Context, cfg Config) (err error) {
	if cfg.Auth.MigrateURL.IsZero() {
		return nil
	}
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: service + " migrate", Config: cfg.Telemetry, LogOutput: cfg.LogOutput})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Shutdown(context.WithoutCancel(ctx))) }()
	return authn.Migrate(ctx, cfg.Auth, tel.Logger)
}
