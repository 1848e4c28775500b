package app

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/limits"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/telemetry"
	"github.com/lectern-dev/lectern/shared/trustedkeys"
)

// Config is the configuration of the edge. The command reads Config from environment variables.
type Config struct {
	// Which paths it routes. public: the documented ones and the console. internal: those below /internal, and the look-up of
	// regions, for clients within the platform. Never let the internet reach an edge with internal paths.
	Paths string `env:"EDGE_PATHS" envDefault:"public"`

	// The address of each service, comma-separated: entries=lectern-entries:80,region=lectern-region:80. The services are
	// entries, embeddables, experiments, region, proxy and console. The paths of one that is not named are unknown. For
	// internal paths, the addresses are the internal ones. A removal of a project needs region, and skips those that are
	// not named.
	Services []string `env:"EDGE_SERVICES,required"`

	// Operations that get no route, comma-separated, by their ids in the API's description. Not set: none.
	Exclude []string `env:"EDGE_EXCLUDE"`

	// How long a service may take, after it has the request, until the headers of its answer. 0: any time. A large
	// removal may take minutes: the chart sets 10m for internal paths. It does not apply to the proxy.
	AnswerTimeout time.Duration `env:"EDGE_ANSWER_TIMEOUT" envDefault:"2m"`

	// Whether the public address also takes HTTP/2 without TLS (h2c), which a gateway must be told to send.
	HTTP2 bool `env:"EDGE_HTTP2" envDefault:"false"`

	HTTP      httpserver.Config
	Waits     limits.WaitOptions
	Telemetry telemetry.Config

	// LogOutput takes the log. Nil: standard error.
	LogOutput io.Writer `env:"-"`
}

// Validate checks the settings of the edge itself, and that EDGE_KEYS is set. The error names each fault, and is nil
// for none.
func (c Config) Validate() error {
	_, err := c.addresses()
	faults := []error{err}
	if len(c.Services) == 0 {
		faults = append(faults, config.Invalid("EDGE_SERVICES", "", addressRule))
	}
	if c.Paths != "public" && c.Paths != "internal" {
		faults = append(faults, config.Invalid("EDGE_PATHS", c.Paths, "public, internal"))
	}
	known := []string{}
	for _, r := range c.table() {
		known = append(known, r.Operation)
	}
	for _, id := range c.Exclude {
		if !slices.Contains(known, id) {
			faults = append(faults, config.Invalid("EDGE_EXCLUDE", id, "a list of "+strings.Join(known, ", ")))
		}
	}
	if c.AnswerTimeout < 0 {
		faults = append(faults, config.Invalid("EDGE_ANSWER_TIMEOUT", c.AnswerTimeout, "0s or more"))
	}
	if len(c.HTTP.EdgeKeys) == 0 {
		faults = append(faults, config.Invalid("EDGE_KEYS", "", trustedkeys.Rule))
	}
	return errors.Join(faults...)
}

// table returns all paths that an edge with this EDGE_PATHS knows. EDGE_EXCLUDE does not shorten the table.
func (c Config) table() routes.Table {
	if c.Paths == "internal" {
		return routes.Inside()
	}
	return routes.Outside()
}

// addressRule describes an element of EDGE_SERVICES, for error messages.
const addressRule = "name=host:port, each name of entries, embeddables, experiments, region, proxy, console at most once"

// addresses returns the host:port of each service in EDGE_SERVICES. The error names each entry that is not valid.
func (c Config) addresses() (map[routes.Service]string, error) {
	names := []routes.Service{routes.Entries, routes.Embeddables, routes.Experiments, routes.Region, routes.Proxy, routes.Console}
	addresses := make(map[routes.Service]string, len(names))
	var faults []error
	for _, pair := range c.Services {
		name, address, _ := strings.Cut(pair, "=")
		service := routes.Service(name)
		host, port, err := net.SplitHostPort(address)
		_, twice := addresses[service]
		if err != nil || host == "" || port == "" || twice || !slices.Contains(names, service) {
			faults = append(faults, config.Invalid("EDGE_SERVICES", pair, addressRule))
			continue
		}
		addresses[service] = address
	}
	return addresses, errors.Join(faults...)
}
