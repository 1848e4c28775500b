// Package operator configures and runs the operator. The operator reconciles the objects of lectern.dev: projects, API
// keys, and the rules of the credential proxy.
//
// Several operators may run. The operator that holds the Lease is the leader and reconciles objects. Every other
// operator stands by until it gets the Lease.
package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/shared/auth/authn"
	"github.com/lectern-dev/lectern/shared/shutdown"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// kubeRate is how many requests a second the operator may send to the API server for each kind of object. Bursts have
// twice as many. Ten new API keys a second need this rate. The API server protects itself by its own flow control.
const kubeRate = 100

// The operator requests its Lease in its own namespace, and records an event there when the leader changes.
// A role cannot restrict the verb create to one name.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=lectern,resources=leases,resourceNames=lectern-operator,verbs=get;update
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=lectern,resources=leases,verbs=create
// +kubebuilder:rbac:groups="",namespace=lectern,resources=events,verbs=create;patch

// Run validates cfg, and runs the controllers until ctx ends. An operator that has lost its Lease stops with an error,
// so that it does not act at the same time as its successor.
func Run(ctx context.Context, cfg Config) (err error) {
	if err := errors.Join(cfg.Validate(), cfg.Cluster.Validate(), cfg.Rules.Validate(), cfg.Egress.Validate(), cfg.Lease.Validate(), cfg.Auth.Validate()); err != nil {
		return err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: "operator", Config: cfg.Telemetry, LogOutput: cfg.LogOutput})
	if err != nil {
		return err
	}
	var parts shutdown.Stack
	defer func() { err = errors.Join(err, parts.Stop(shutdown.Timeout)) }()
	parts.Add(tel.Shutdown)
	cfg.Cluster.SetLogger(tel.Logger)
	kube, err := cfg.Cluster.Client("lectern-operator")
	if err != nil {
		return err
	}
	server := newServer(cfg, tel)
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return server.serve(ctx) })
	running.Go(func() error {
		if !awaitAPIServer(ctx, kube, tel.Logger) {
			return nil
		}
		return control(ctx, kube, cfg, tel, server, &parts)
	})
	return running.Wait()
}

// apiServerRetry is the pause between two requests to an API server that does not answer.
const apiServerRetry = 2 * time.Second

// awaitAPIServer waits until the API server answers, and reports whether the API server did before ctx ended. The
// controllers cannot be set up before. While a cluster starts, an operator that exits would wait for minutes in
// CrashLoopBackOff.
func awaitAPIServer(ctx context.Context, kube *rest.Config, log *slog.Logger) bool {
	said := ""
	return wait.PollUntilContextCancel(ctx, apiServerRetry, true, func(ctx context.Context) (bool, error) {
		api, err := discovery.NewDiscoveryClientForConfig(kube)
		if err == nil {
			_, err = api.ServerVersion()
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			log.WarnContext(ctx, "waits for the API server", "error", said)
		}
		return err == nil, nil
	}) == nil
}

// control runs the controllers until ctx ends. If ctx ends during the start, a fault of the start is no error.
func control(ctx context.Context, kube *rest.Config, cfg Config, tel *telemetry.Telemetry, server *server, parts *shutdown.Stack) error {
	mgr, err := newManager(kube, cfg, tel)
	if err == nil {
		err = setUp(ctx, mgr, cfg, tel, parts)
	}
	if err == nil {
		err = measure(tel.MeterProvider, mgr.GetCache(), cfg.Now)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	server.follow(ctx, mgr)
	tel.Logger.InfoContext(ctx, "starting", "namespaces", strings.Join(cfg.Cluster.WatchNamespaces, ","), "lease", cfg.LeaderElection)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the controllers: %w", err)
	}
	tel.Logger.InfoContext(ctx, "stopped")
	return nil
}

// Migrate migrates the key database if AUTH_MIGRATE_DATABASE_URL is set, and otherwise does nothing. The operator has
// no database of its own.
func Migrate(ctx context.Context, cfg Config) (err error) {
	if cfg.Auth.MigrateURL.IsZero() {
		return nil
	}
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: "operator migrate", Config: cfg.Telemetry, LogOutput: cfg.LogOutput})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Shutdown(context.WithoutCancel(ctx))) }()
	return authn.Migrate(ctx, cfg.Auth, tel.Logger)
}

// newManager returns the manager that runs the controllers and elects the leader. The manager serves no metrics and no
// health checks, because [server] does.
func newManager(kube *rest.Config, cfg Config, tel *telemetry.Telemetry) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	kube.QPS, kube.Burst = kubeRate, 2*kubeRate
	var (
		several  = true
		lease    = cmp.Or(cfg.LeaseDuration, 15*time.Second)
		renew    = lease * 2 / 3
		retry    = lease * 2 / 15
		graceful = 20 * time.Second
	)
	mgr, err := ctrl.NewManager(kube, ctrl.Options{
		Scheme: scheme,
		Cache:  controller.CacheOptions(cfg.Cluster),
		Client: controller.ClientOptions(),
		Logger: logr.FromSlogHandler(quietShutdown{tel.Logger.Handler()}),

		LeaderElection: cfg.LeaderElection, LeaderElectionID: cfg.Lease.Name, LeaderElectionNamespace: cfg.Lease.Key().Namespace,
		LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry,
		// No controller runs after the manager has stopped: Run waits for all of them.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &graceful,

		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &several},
	})
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	return mgr, nil
}
