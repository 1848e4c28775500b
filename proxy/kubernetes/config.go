// Package kubernetes runs the credential proxy with a policy from a Kubernetes cluster. It watches Credentials,
// ProxyEndpoints and Projects, and applies their changes. It validates each object by the same code as the operator and
// the folder of manifests. Objects that do not depend on a faulty object stay in force.
//
// The values of Credentials come from one Secret, which the operator writes. The proxy reads no other Secret, and
// writes nothing to the API server. While the API server is unreachable, the last policy stays in force.
package kubernetes

import (
	"context"
	"fmt"

	"github.com/lectern-dev/lectern/k8s/cluster"
	"github.com/lectern-dev/lectern/proxy/app"
	"github.com/lectern-dev/lectern/shared/config"
)

// Config holds the settings of the proxy in the build for Kubernetes, which the program reads from environment
// variables.
type Config struct {
	// Proxy is the configuration of the proxy itself. If PROXY_MANIFESTS is set, the policy comes from that folder, and
	// no cluster is used.
	Proxy   app.Config
	Cluster cluster.Config
	Rules   cluster.Rules
}

// Run serves until ctx ends, and then lets the requests in flight finish for up to DRAIN_TIMEOUT. The policy comes from
// the cluster, or from the folder in PROXY_MANIFESTS if that is set. Run returns an error if it finds neither a folder
// nor a cluster.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Proxy.Manifests == "" && cfg.Proxy.Source == nil {
		kube, err := cfg.Cluster.Client("lectern-proxy")
		if err != nil {
			return &config.Fault{Variable: "PROXY_MANIFESTS", Problem: fmt.Sprintf("is not set, and there is no Kubernetes to ask instead: %v", err)}
		}
		cfg.Proxy.Source = func(o app.SourceOptions) (app.Source, error) {
			cfg.Cluster.SetLogger(o.Log)
			return New(kube, cfg.Cluster, cfg.Rules, o)
		}
	}
	return app.Run(ctx, cfg.Proxy)
}

// Migrate migrates the key database if AUTH_MIGRATE_DATABASE_URL is set, as [app.Migrate] does.
func Migrate(ctx context.Context, cfg Config) error { return app.Migrate(ctx, cfg.Proxy) }
