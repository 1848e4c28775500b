//go:debug x509usefallbackroots=1

// Command proxy is the credential proxy: serve (the default) or migrate, configured by the environment. Its policy
// comes from the folder in PROXY_MANIFESTS, or else from the Kubernetes cluster.
package main

import (
	"context"
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/lectern-dev/lectern/proxy/kubernetes"
	"github.com/lectern-dev/lectern/shared/service"
)

func main() {
	// net/http logs the bytes that a target sends on an idle connection, which may contain a credential.
	log.SetOutput(io.Discard)
	os.Exit(service.Main("proxy", os.Args[1:], os.Stderr,
		service.NewCommand("serve", serve),
		service.NewCommand("migrate", kubernetes.Migrate),
	))
}

// serve runs the proxy. It also sets the global logger of Kubernetes' libraries, which only a program may set, not a
// package.
func serve(ctx context.Context, cfg kubernetes.Config) error {
	cfg.Cluster.OnLogger = func(log *slog.Logger) { klog.SetLogger(logr.FromSlogHandler(log.Handler())) }
	return kubernetes.Run(ctx, cfg)
}
