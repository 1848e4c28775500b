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
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// Config is what the operator is told.
type Config struct {
	// The namespaces whose objects are looked after, comma-separated. Not set: all.
	WatchNamespaces []string `env:"WATCH_NAMESPACES"`

	// What becomes of objects whose project no Project declares: refuse, or allow, which lets every namespace read the
	// project's data and use its credentials' ids. The proxy is told the same.
	UndeclaredProjects string `env:"UNDECLARED_PROJECTS" envDefault:"refuse"`

	// Whether several operators agree on one that acts, by a Lease; the others stand by.
	LeaderElection bool `env:"LEADER_ELECTION" envDefault:"true"`

	// The namespace of the Lease. Not set: the one that the operator runs in.
	LeaseNamespace string `env:"LEASE_NAMESPACE"`

	// The name of the Lease.
	LeaseName string `env:"LEASE_NAME" envDefault:"lectern-operator"`

	// How long the others wait for the one that acts before one of them takes over. It gives up acting at two
	// thirds of that.
	LeaseDuration time.Duration `env:"LEASE_DURATION" envDefault:"15s"`

	// How many objects of a kind are worked on at a time.
	Workers int `env:"WORKERS" envDefault:"4"`

	// How many requests a second the operator makes of the API server; at once, twice as many.
	KubeRate int `env:"KUBE_RATE" envDefault:"100"`

	// The internal address of the region service, such as http://region:9090, which is told of Projects. Not
	// set: Projects only say whose a project is.
	RegionURL string `env:"REGION_INTERNAL_URL"`

	// The keys of those who may send data in, comma-separated; the first is sent to the region service. Required
	// with REGION_INTERNAL_URL.
	IngestKeys []config.Secret `env:"INGEST_API_KEYS"`

	// How long the deletion of a Project with deletionPolicy Delete waits for a region service that is out of
	// reach. Then the object goes, and the service keeps the project.
	ForgetTimeout time.Duration `env:"FORGET_TIMEOUT" envDefault:"10m"`

	// How long the deletion of an APIKey waits for a keys' database that is out of reach. Then the object goes, and
	// its keys are revoked when the database is back.
	RevokeTimeout time.Duration `env:"REVOKE_TIMEOUT" envDefault:"2m"`

	// The URL under which clients reach the API, which Secrets of APIKeys hold where the object says none.
	PublicURL string `env:"PUBLIC_URL"`

	// Where metrics and health are served; never routed from outside.
	ListenInternal string `env:"LISTEN_INTERNAL" envDefault:":9090"`

	// Serves Go's profiles under /debug/pprof/ on the internal address.
	Pprof bool `env:"PPROF" envDefault:"false"`

	Auth      auth.Config
	Pool      pgdb.Options
	Telemetry telemetry.Config

	// REST says how the API server is reached. Nil: by the service account of the pod, or by KUBECONFIG.
	REST *rest.Config `env:"-"`

	// Ready is called once the internal address is open, with what it has become. Nil: nobody is told.
	Ready func(internal net.Addr) `env:"-"`

	// OnLogger is called with the log before anything is logged: the program gives it to Kubernetes' libraries,
	// which log through globals. Nil: they are silent.
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
	if c.LeaseName == "" {
		faults = append(faults, &config.Fault{Variable: "LEASE_NAME", Problem: "is not set, and is required"})
	}
	if c.LeaseDuration < time.Second || c.LeaseDuration > 10*time.Minute {
		faults = append(faults, config.Invalid("LEASE_DURATION", c.LeaseDuration, "1s to 10m"))
	}
	if c.Workers < 1 || c.Workers > 1000 {
		faults = append(faults, config.Invalid("WORKERS", c.Workers, "1 to 1000"))
	}
	if c.KubeRate < 1 || c.KubeRate > 100_000 {
		faults = append(faults, config.Invalid("KUBE_RATE", c.KubeRate, "1 to 100000"))
	}
	if c.ForgetTimeout < time.Second {
		faults = append(faults, config.Invalid("FORGET_TIMEOUT", c.ForgetTimeout, "1s or more"))
	}
	if c.RevokeTimeout < time.Second {
		faults = append(faults, config.Invalid("REVOKE_TIMEOUT", c.RevokeTimeout, "1s or more"))
	}
	for _, a := range []struct{ variable, given, like string }{
		{"REGION_INTERNAL_URL", c.RegionURL, "an http or https URL such as http://region:9090"},
		{"PUBLIC_URL", c.PublicURL, "an http or https URL without query, such as https://api.example.com"},
	} {
		if u, err := url.Parse(a.given); a.given != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
			faults = append(faults, config.Invalid(a.variable, a.given, a.like))
		}
	}
	if c.RegionURL != "" && (len(c.IngestKeys) == 0 || c.IngestKeys[0].IsZero()) {
		faults = append(faults, &config.Fault{Variable: "INGEST_API_KEYS", Problem: "is not set, and is required with REGION_INTERNAL_URL"})
	}
	if _, port, err := net.SplitHostPort(c.ListenInternal); err != nil || port == "" {
		faults = append(faults, config.Invalid("LISTEN_INTERNAL", c.ListenInternal, "host:port, such as :9090 or 127.0.0.1:9090"))
	}
	return errors.Join(faults...)
}
