// Package kubernetes runs the credential proxy with a policy from a Kubernetes cluster. It watches Credentials,
// ProxyEndpoints and Projects, and applies their changes. It validates each object by the same code as the operator and
// the folder of manifests. A faulty object does not affect others.
//
// The values of Credentials come from one Secret, which the operator writes. The proxy reads no other, and writes nothing
// to the API server. While the API server is unreachable, the last policy stays in force.
package kubernetes

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/app"
	"github.com/lectern-dev/lectern/shared/config"
)

// Options configures the Source.
type Options struct {
	// The namespaces whose objects count, comma-separated: Projects, APIKeys, Credentials, ProxyEndpoints and the Secrets
	// that they name. Not set: all.
	WatchNamespaces []string `env:"WATCH_NAMESPACES"`

	// Objects whose project no Project declares: refuse them, or allow them. With allow, every namespace may read the
	// project's data and use its credentials' ids. Operator and proxy need the same value. A folder of manifests needs
	// no Projects.
	UndeclaredProjects string `env:"UNDECLARED_PROJECTS" envDefault:"refuse"`

	// The Secret with the values of all Credentials, as namespace/name. The operator writes it, and the proxy reads no
	// other.
	Values string `env:"PROXY_VALUES" envDefault:"lectern/lectern-proxy-values"`

	// REST is the configuration of the API server's client. Nil: the service account of the pod, or KUBECONFIG.
	REST *rest.Config `env:"-"`

	// OnLogger is called with the logger before the first request to the API server. The program passes it to the
	// Kubernetes libraries, which log through globals. Nil: those stay unchanged.
	OnLogger func(*slog.Logger) `env:"-"`
}

// Validate returns an error if a value is not allowed.
func (o Options) Validate() error {
	if !manifests.KnownUndeclared(o.UndeclaredProjects) {
		return config.Invalid("UNDECLARED_PROJECTS", o.UndeclaredProjects, "refuse, allow")
	}
	if _, err := manifests.ParseName(o.Values); err != nil {
		return config.Invalid("PROXY_VALUES", o.Values, "a namespace and a name, such as lectern/lectern-proxy-values")
	}
	seen := map[string]bool{}
	for _, name := range o.WatchNamespaces {
		if seen[name] || len(name) > 63 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return config.Invalid("WATCH_NAMESPACES", strings.Join(o.WatchNamespaces, ","), "names of namespaces, each once, such as team-a,team-b")
		}
		seen[name] = true
	}
	return nil
}

// values returns the name of the Secret in Values, which is valid.
func (o Options) values() types.NamespacedName {
	name, _ := manifests.ParseName(o.Values)
	return name
}

// Config is the configuration of the proxy.
type Config struct {
	// Proxy is the configuration of the proxy itself. If PROXY_MANIFESTS is set, the policy comes from that folder, and
	// no cluster is used.
	Proxy app.Config
	// Kube is the configuration for the cluster.
	Kube Options
}

// Run serves until ctx ends, and then shuts down gracefully.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Proxy.Manifests == "" && cfg.Proxy.Source == nil {
		kube := cfg.Kube.REST
		if kube == nil {
			var err error
			if kube, err = ctrlconfig.GetConfig(); err != nil {
				return &config.Fault{Variable: "PROXY_MANIFESTS", Problem: fmt.Sprintf("is not set, and there is no Kubernetes to ask instead: %v", err)}
			}
		}
		cfg.Proxy.Source = func(o app.SourceOptions) (app.Source, error) {
			if cfg.Kube.OnLogger != nil {
				cfg.Kube.OnLogger(o.Log)
			}
			return New(kube, cfg.Kube, o)
		}
	}
	return app.Run(ctx, cfg.Proxy)
}

// Migrate migrates the key database, as [app.Migrate] does.
func Migrate(ctx context.Context, cfg Config) error { return app.Migrate(ctx, cfg.Proxy) }
