// Package cluster has the settings that several programs in a cluster read: the operator, its jobs, and the credential
// proxy. So each setting has one description and one validation. The package also finds the API server.
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

// Config says which API server a program uses, and in which namespaces the program reads objects.
type Config struct {
	// The namespaces whose objects count, comma-separated: Projects, APIKeys, Credentials, ProxyEndpoints and the Secrets
	// that they name. Not set: all.
	WatchNamespaces []string `env:"WATCH_NAMESPACES"`

	// REST is the configuration of the API server's client. Nil: KUBECONFIG, the pod's service account or
	// ~/.kube/config, whichever is found first.
	REST *rest.Config `env:"-"`

	// OnLogger is called with the log before anything is logged. The program passes it to Kubernetes' libraries, which
	// log through globals. Nil: they stay unchanged.
	OnLogger func(*slog.Logger) `env:"-"`
}

// Validate returns an error if WATCH_NAMESPACES contains a name twice, or a name that is not allowed. Allowed are up to
// 63 characters of a-z, 0-9 and "-".
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

// Client returns a copy of REST with the given user agent, for a client of the API server. If REST is nil, Client looks
// for KUBECONFIG, the pod's service account and ~/.kube/config, in this order. It returns an error if it finds none.
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

// Namespaces returns the namespaces to list objects in. If all namespaces are watched, the result is the one name "",
// which stands for all of them in a list request.
func (c Config) Namespaces() []string {
	if len(c.WatchNamespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return c.WatchNamespaces
}

// CacheNamespaces returns the watched namespaces for the field DefaultNamespaces of a cache's options. The map is empty
// if all namespaces are watched.
func (c Config) CacheNamespaces() map[string]cache.Config {
	all := map[string]cache.Config{}
	for _, name := range c.WatchNamespaces {
		all[name] = cache.Config{}
	}
	return all
}

// Rules are the settings that the operator and the credential proxy must share, so that they decide alike about each
// object.
type Rules struct {
	// Objects whose project no Project declares: refuse them, or allow them. With allow, every namespace may read the
	// project's data and use its credentials' ids. Operator and proxy need the same value. A folder of manifests needs
	// no Projects.
	UndeclaredProjects string `env:"UNDECLARED_PROJECTS" envDefault:"refuse"`

	// The Secret with the values of all Credentials, as namespace/name. The operator writes it, and the proxy reads no
	// other.
	Values string `env:"PROXY_VALUES" envDefault:"lectern/lectern-proxy-values"`
}

// Validate returns an error if UNDECLARED_PROJECTS is neither refuse nor allow, or if PROXY_VALUES is no
// namespace/name.
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

// AllowUndeclared reports whether an object may be in force although no Project declares its project.
func (r Rules) AllowUndeclared() bool { return r.UndeclaredProjects == "allow" }

// ValuesName returns the namespace and the name of the Secret in PROXY_VALUES.
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

// Validate returns an error if LEASE_NAME is empty.
func (l Lease) Validate() error {
	if l.Name == "" {
		return &config.Fault{Variable: "LEASE_NAME", Problem: "is not set, and is required"}
	}
	return nil
}

// Key returns the namespace and the name of the Lease. The namespace is [OwnNamespace] if Namespace is empty.
func (l Lease) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(l.Namespace, OwnNamespace()), Name: l.Name}
}

// OwnNamespace returns the pod's namespace, which it reads from the mounted service account. Without a mounted service
// account, it returns "lectern".
func OwnNamespace() string {
	name, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "lectern"
	}
	return strings.TrimSpace(string(name))
}
