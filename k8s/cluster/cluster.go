// Package cluster has the settings that several programs in a cluster read: the operator, its jobs, and the credential
// proxy. A setting has its description and its validation here, once. The package also finds the API server.
package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/lectern-dev/lectern/shared/config"
)

// Config says which API server a program uses, and whose objects count there.
type Config struct {
	// The namespaces whose objects count, comma-separated: Projects, APIKeys, Credentials, ProxyEndpoints and the Secrets
	// that they name. Not set: all.
	WatchNamespaces []string `env:"WATCH_NAMESPACES"`

	// REST is the configuration of the API server's client. Nil: the service account of the pod, or KUBECONFIG.
	REST *rest.Config `env:"-"`

	// OnLogger is called with the log before anything is logged. The program passes it to Kubernetes' libraries, which
	// log through globals. Nil: they stay unchanged.
	OnLogger func(*slog.Logger) `env:"-"`
}

// Validate reports the values that are not allowed.
func (c Config) Validate() error {
	seen := map[string]bool{}
	for _, name := range c.WatchNamespaces {
		if seen[name] || len(name) > 63 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return config.Invalid("WATCH_NAMESPACES", strings.Join(c.WatchNamespaces, ","), "names of namespaces, each once, such as team-a,team-b")
		}
		seen[name] = true
	}
	return nil
}

// Client returns the configuration of a client of the API server, with a user agent. It returns an error if there is
// neither a configuration nor a cluster.
func (c Config) Client(userAgent string) (*rest.Config, error) {
	given := c.REST
	if given == nil {
		var err error
		if given, err = ctrlconfig.GetConfig(); err != nil {
			return nil, fmt.Errorf("find the API server: %w", err)
		}
	}
	found := rest.CopyConfig(given)
	found.UserAgent = userAgent
	return found, nil
}

// SetLogger calls OnLogger, unless it is nil.
func (c Config) SetLogger(log *slog.Logger) {
	if c.OnLogger != nil {
		c.OnLogger(log)
	}
}

// Namespaces returns the namespaces to list objects in. The name "" stands for all of them.
func (c Config) Namespaces() []string {
	if len(c.WatchNamespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return c.WatchNamespaces
}

// CacheNamespaces returns the DefaultNamespaces of a cache's options: none if all namespaces count.
func (c Config) CacheNamespaces() map[string]cache.Config {
	all := map[string]cache.Config{}
	for _, name := range c.WatchNamespaces {
		all[name] = cache.Config{}
	}
	return all
}

// Rules are the settings by which the operator and the proxy come to the same decisions.
type Rules struct {
	// Objects whose project no Project declares: refuse them, or allow them. With allow, every namespace may read the
	// project's data and use its credentials' ids. Operator and proxy need the same value. A folder of manifests needs
	// no Projects.
	UndeclaredProjects string `env:"UNDECLARED_PROJECTS" envDefault:"refuse"`

	// The Secret with the values of all Credentials, as namespace/name. The operator writes it, and the proxy reads no
	// other.
	Values string `env:"PROXY_VALUES" envDefault:"lectern/lectern-proxy-values"`
}

// Validate reports the values that are not allowed.
func (r Rules) Validate() error {
	var faults []error
	if r.UndeclaredProjects != "refuse" && r.UndeclaredProjects != "allow" {
		faults = append(faults, config.Invalid("UNDECLARED_PROJECTS", r.UndeclaredProjects, "refuse, allow"))
	}
	if name := r.ValuesName(); len(validation.IsDNS1123Label(name.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(name.Name)) > 0 {
		faults = append(faults, config.Invalid("PROXY_VALUES", r.Values, "a namespace and a name, such as lectern/lectern-proxy-values"))
	}
	return errors.Join(faults...)
}

// AllowUndeclared reports whether objects count whose project no Project declares.
func (r Rules) AllowUndeclared() bool { return r.UndeclaredProjects == "allow" }

// ValuesName returns the name of the Secret in Values.
func (r Rules) ValuesName() types.NamespacedName {
	namespace, name, _ := strings.Cut(r.Values, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// Lease names the Lease by which operators elect a leader.
type Lease struct {
	// Namespace is the namespace of the Lease. Tests set it; empty: [OwnNamespace].
	Namespace string `env:"-"`

	// The name of the operator's Lease.
	Name string `env:"LEASE_NAME" envDefault:"lectern-operator"`
}

// Validate reports the values that are not allowed.
func (l Lease) Validate() error {
	if l.Name == "" {
		return &config.Fault{Variable: "LEASE_NAME", Problem: "is not set, and is required"}
	}
	return nil
}

// Key returns the namespace and the name of the Lease.
func (l Lease) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(l.Namespace, OwnNamespace()), Name: l.Name}
}

// OwnNamespace returns the pod's namespace, or lectern outside a pod.
func OwnNamespace() string {
	name, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "lectern"
	}
	return strings.TrimSpace(string(name))
}
