package operator

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/trustedkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// Config configures the operator.
type Config struct {
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

	// Whether operators elect a leader by a Lease. The others stand by.
	LeaderElection bool `env:"LEADER_ELECTION" envDefault:"true"`

	// LeaseNamespace is the namespace of the operator's Lease. Tests set it; empty: the pod's, or lectern outside a pod.
	LeaseNamespace string `env:"-"`

	// The name of the operator's Lease.
	LeaseName string `env:"LEASE_NAME" envDefault:"lectern-operator"`

	// LeaseDuration is how long the others wait for a silent leader before one of them takes over. The leader gives up
	// after two thirds of that. Tests set it; 0: 15 seconds, as in Kubernetes' own controllers.
	LeaseDuration time.Duration `env:"-"`

	// The internal address of the region service, such as http://region:9090. The operator stores Projects there. Not
	// set: a Project only declares which namespace owns a project.
	RegionURL string `env:"REGION_INTERNAL_URL"`

	// The keys for ingest, comma-separated, each of 16 to 256 visible ASCII characters. A data service accepts any of them,
	// and without one it refuses ingest. The operator sends the first to the region service, and needs one with
	// REGION_INTERNAL_URL.
	IngestKeys []config.Secret `env:"INGEST_API_KEYS"`

	// The URL at which clients reach the API. Links to further pages begin with it, and Secrets of APIKeys have it. Not
	// set: the scheme and host of the request, and none in Secrets.
	PublicURL string `env:"PUBLIC_URL"`

	// The address of metrics and health, and of a service's ingest and administration. Never route to it from outside.
	ListenInternal string `env:"LISTEN_INTERNAL" envDefault:":9090"`

	// Whether the internal address serves Go's profiles under /debug/pprof/.
	Pprof bool `env:"PPROF" envDefault:"false"`

	Auth      auth.Config
	Pool      pgdb.Options
	Telemetry telemetry.Config

	// REST is the configuration of the API server's client. Nil: the service account of the pod, or KUBECONFIG.
	REST *rest.Config `env:"-"`

	// Ready is called once the internal address is open, with the address. Nil: not called.
	Ready func(internal net.Addr) `env:"-"`

	// OnLogger is called with the log before anything is logged. The program passes it to Kubernetes' libraries, which
	// log through globals. Nil: they are silent.
	OnLogger func(*slog.Logger) `env:"-"`

	// Now is the clock. Nil: time.Now.
	Now func() time.Time `env:"-"`

	// LogOutput takes the log. Nil: standard error.
	LogOutput io.Writer `env:"-"`
}

// Validate reports the values that are not allowed.
func (c Config) Validate() error {
	var faults []error
	if !manifests.KnownUndeclared(c.UndeclaredProjects) {
		faults = append(faults, config.Invalid("UNDECLARED_PROJECTS", c.UndeclaredProjects, "refuse, allow"))
	}
	if _, err := manifests.ParseName(c.Values); err != nil {
		faults = append(faults, config.Invalid("PROXY_VALUES", c.Values, "a namespace and a name, such as lectern/lectern-proxy-values"))
	}
	if c.LeaseName == "" {
		faults = append(faults, &config.Fault{Variable: "LEASE_NAME", Problem: "is not set, and is required"})
	}
	for _, a := range []struct{ variable, given, like string }{
		{"REGION_INTERNAL_URL", c.RegionURL, "an http or https URL such as http://region:9090"},
		{"PUBLIC_URL", c.PublicURL, "an http or https URL without query, such as https://api.example.com"},
	} {
		if u, err := url.Parse(a.given); a.given != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
			faults = append(faults, config.Invalid(a.variable, a.given, a.like))
		}
	}
	if c.RegionURL != "" && len(c.IngestKeys) == 0 {
		faults = append(faults, &config.Fault{Variable: "INGEST_API_KEYS", Problem: "is not set, and is required with REGION_INTERNAL_URL"})
	}
	if err := trustedkeys.Check("INGEST_API_KEYS", c.IngestKeys); err != nil {
		faults = append(faults, err)
	}
	if _, port, err := net.SplitHostPort(c.ListenInternal); err != nil || port == "" {
		faults = append(faults, config.Invalid("LISTEN_INTERNAL", c.ListenInternal, "host:port, such as :9090 or 127.0.0.1:9090"))
	}
	return errors.Join(faults...)
}
