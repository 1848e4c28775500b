package uninstall

import (
	"io"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/lectern-dev/lectern/shared/telemetry"
)

// Config holds the settings of the job.
type Config struct {
	// The namespaces whose objects count, comma-separated: Projects, APIKeys, Credentials, ProxyEndpoints and the Secrets
	// that they name. Not set: all.
	WatchNamespaces []string `env:"WATCH_NAMESPACES"`

	// LeaseNamespace is the namespace of the operator's Lease. Tests set it; empty: the pod's, or lectern outside a pod.
	LeaseNamespace string `env:"-"`

	// The name of the operator's Lease.
	LeaseName string `env:"LEASE_NAME" envDefault:"lectern-operator"`

	Telemetry telemetry.Config

	// REST says how the API server is reached. Nil: by the service account of the pod, or by KUBECONFIG.
	REST *rest.Config `env:"-"`

	// OnLogger is called with the log before anything is logged: the program gives it to Kubernetes' libraries,
	// which log through globals. Nil: they are silent.
	OnLogger func(*slog.Logger) `env:"-"`

	// LogOutput takes the log. Nil: standard error.
	LogOutput io.Writer `env:"-"`
}
