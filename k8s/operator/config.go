package operator

import (
	"errors"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/lectern-dev/lectern/k8s/cluster"
	"github.com/lectern-dev/lectern/proxy/egress"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/telemetry"
	"github.com/lectern-dev/lectern/shared/trustedkeys"
)

// Config holds the settings of the operator, which the program reads from environment variables. A field with env:"-"
// has no variable: code and tests set it.
type Config struct {
	Cluster cluster.Config
	Rules   cluster.Rules

	// Whether operators elect a leader by a Lease. The others stand by.
	LeaderElection bool `env:"LEADER_ELECTION" envDefault:"true"`

	Lease cluster.Lease

	// LeaseDuration is how long a standby operator waits for a silent leader before the standby takes over. The leader
	// gives up after two thirds of LeaseDuration. Tests set it; 0: 15 seconds, as in Kubernetes' own controllers.
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

	// The issuer of the tokens of the cluster's ServiceAccounts, as in the API server's --service-account-issuer. Clusters
	// that share the keys' database need different issuers. Not set: no APIKey may have spec.identity.serviceAccountRef.
	ClusterIssuer string `env:"CLUSTER_ISSUER"`

	// The address of metrics and health, and of a service's ingest and administration. Never route to it from outside.
	ListenInternal string `env:"LISTEN_INTERNAL" envDefault:":9090"`

	// Whether the internal address serves Go's profiles under /debug/pprof/.
	Pprof bool `env:"PPROF" envDefault:"false"`

	// Whether the operator fetches the tokens of Credentials with valueFrom.oauth2. It then connects to the token endpoints
	// that these name.
	FetchCredentials bool `env:"FETCH_CREDENTIALS" envDefault:"false"`

	Egress    egress.Config
	Auth      auth.Config
	Pool      pgdb.Options
	Telemetry telemetry.Config

	// Ready is called once the internal address is open, with the address. Nil: not called.
	Ready func(internal net.Addr) `env:"-"`

	// Now is the clock. Nil: time.Now.
	Now func() time.Time `env:"-"`

	// LogOutput takes the log. Nil: standard error.
	LogOutput io.Writer `env:"-"`
}

// Validate returns an error that lists the operator's own settings that are not allowed, or nil. It does not check the
// nested settings, such as Cluster.
func (c Config) Validate() error {
	var faults []error
	for _, a := range []struct{ variable, given, like string }{
		{"REGION_INTERNAL_URL", c.RegionURL, "an http or https URL such as http://region:9090"},
		{"CLUSTER_ISSUER", c.ClusterIssuer, "an http or https URL without query, such as https://kubernetes.default.svc.cluster.local"},
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
