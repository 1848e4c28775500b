// Package proxysource is the credential proxy with its policy in a Kubernetes cluster: it follows the Credentials,
// ProxyEndpoints and Projects there, and keeps in force what they say. It judges by the same code as the operator
// and the folder of manifests, each object on its own, so that a faulty one keeps out itself and no other.
//
// Of Secrets it holds those values that a Credential refers to, and of the others nothing: it follows their
// metadata, and reads one at a time what is referred to. It writes nothing to the API server. While that is out of
// reach the last policy stays in force.
package proxysource

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"k8s.io/client-go/rest"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/app"
	"github.com/lectern-dev/lectern/shared/config"
)

// Options configures the store.
type Options struct {
	// The namespaces whose objects count, comma-separated: Credentials, ProxyEndpoints, their Secrets, and the
	// Projects that say who may have them. Not set: all.
	WatchNamespaces []string `env:"WATCH_NAMESPACES"`

	// What becomes of objects whose project no Project declares: refuse, or allow, which lets every namespace use the
	// project's credentials' ids. The operator is told the same. A folder of manifests needs no Projects.
	UndeclaredProjects string `env:"UNDECLARED_PROJECTS" envDefault:"refuse"`

	// REST says how the API server is reached. Nil: by the service account of the pod, or by KUBECONFIG.
	REST *rest.Config `env:"-"`

	// OnLogger is called with the log before the API server is asked for anything: the program gives it to
	// Kubernetes' libraries, which log through globals. Nil: they are left as they are.
	OnLogger func(*slog.Logger) `env:"-"`
}

// Validate reports the values that are not allowed.
func (o Options) Validate() error {
	if !manifests.KnownUndeclared(o.UndeclaredProjects) {
		return config.Invalid("UNDECLARED_PROJECTS", o.UndeclaredProjects, "refuse, allow")
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

// Config is the configuration of the proxy.
type Config struct {
	// Proxy is the proxy's own; with PROXY_MANIFESTS set, the folder holds the policy and no cluster is asked.
	Proxy app.Config
	// Kube is about the cluster.
	Kube Options
}

// Run serves until ctx ends, and then stops without losing a request.
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

// Migrate brings the database of API keys to what this version needs, as [app.Migrate] does.
func Migrate(ctx context.Context, cfg Config) error { return app.Migrate(ctx, cfg.Proxy) }
