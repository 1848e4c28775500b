// Command operator keeps Lectern in step with the objects of lectern.dev in a Kubernetes cluster, configured by
// the environment. Its command retention is the retention job; its command uninstall removes its finalizers and Lease.
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
	"github.com/lectern-dev/lectern/k8s/uninstall"
	"github.com/lectern-dev/lectern/shared/service"
)

func main() {
	os.Exit(service.Main("operator", os.Args[1:], os.Stderr,
		service.NewCommand("serve", serve),
		service.NewCommand("migrate", operator.Migrate),
		service.NewCommand("retention", retain),
		service.NewCommand("uninstall", uninstallRelease),
	))
}

// serve runs the operator. Kubernetes' libraries log through globals, which are a program's to set.
func serve(ctx context.Context, cfg operator.Config) error {
	cfg.Cluster.OnLogger = logLibraries
	return operator.Run(ctx, cfg)
}

// retain runs the retention job.
func retain(ctx context.Context, cfg retention.Config) error {
	cfg.Cluster.OnLogger = logLibraries
	return retention.Run(ctx, cfg)
}

// uninstallRelease removes finalizers and the Lease after the operator has been uninstalled.
func uninstallRelease(ctx context.Context, cfg uninstall.Config) error {
	cfg.Cluster.OnLogger = logLibraries
	return uninstall.Run(ctx, cfg)
}

// logLibraries has Kubernetes' libraries log to log.
func logLibraries(log *slog.Logger) {
	sink := logr.FromSlogHandler(log.Handler())
	klog.SetLogger(sink)
	ctrl.SetLogger(sink)
}
