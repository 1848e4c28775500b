//go:debug x509usefallbackroots=1

// Command operator keeps Lectern in step with the objects of lectern.dev in a Kubernetes cluster, configured by the
// environment. Its command retention is the retention job. Its command migrate migrates the key database.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lectern-dev/lectern/k8s/operator"
	"github.com/lectern-dev/lectern/k8s/retention"
	"github.com/lectern-dev/lectern/shared/service"
)

func main() {
	os.Exit(service.Main("operator", os.Args[1:], os.Stderr,
		service.NewCommand("serve", serve),
		service.NewCommand("migrate", operator.Migrate),
		service.NewCommand("retention", retain),
	))
}

// serve runs the operator. It also sets the global loggers of Kubernetes' libraries, which only a program may set, not
// a package.
func serve(ctx context.Context, cfg operator.Config) error {
	cfg.Cluster.OnLogger = logLibraries
	return operator.Run(ctx, cfg)
}

// retain runs the retention job once. The global loggers of Kubernetes' libraries write to the log of the job.
func retain(ctx context.Context, cfg retention.Config) error {
	cfg.Cluster.OnLogger = logLibraries
	return retention.Run(ctx, cfg)
}

// logLibraries makes the global loggers of klog and controller-runtime write to log.
func logLibraries(log *slog.Logger) {
	sink := logr.FromSlogHandler(log.Handler())
	klog.SetLogger(sink)
	ctrl.SetLogger(sink)
}
