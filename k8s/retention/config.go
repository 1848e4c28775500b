package retention

import (
	"errors"
	"io"
	"net/url"
	"time"

	"github.com/lectern-dev/lectern/k8s/cluster"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// maxDays is the longest retention, in days. The schema of Projects has the same bound.
const maxDays = 36_500

// Config holds the settings of the retention job, which the program reads from environment variables.
type Config struct {
	Cluster cluster.Config

	// The internal address of the entries service, such as http://entries:9090.
	EntriesURL string `env:"ENTRIES_INTERNAL_URL,required"`

	// The internal address of the embeddables service. Empty: the job removes no definitions of embeddables.
	EmbeddablesURL string `env:"EMBEDDABLES_INTERNAL_URL"`

	// A key of ADMIN_API_KEYS of the entries service, without its name.
	AdminKey config.Secret `env:"RETENTION_ADMIN_API_KEY,required"`

	// How many days the entries of a declared project are kept whose Project sets no retentionDays, up to 36500. 0: for
	// ever.
	Days int `env:"RETENTION_DAYS" envDefault:"0"`

	// How long the job may take. The next run continues with the remaining projects.
	Timeout time.Duration `env:"RETENTION_TIMEOUT" envDefault:"1h"`

	Telemetry telemetry.Config

	// Now is the clock. Nil: time.Now.
	Now func() time.Time `env:"-"`

	// LogOutput takes the log. Nil: standard error.
	LogOutput io.Writer `env:"-"`
}

// Validate returns an error that lists the job's own settings that are not allowed, or nil. Run validates Cluster
// separately.
func (c Config) Validate() error {
	var faults []error
	if !isAddress(c.EntriesURL) {
		faults = append(faults, config.Invalid("ENTRIES_INTERNAL_URL", c.EntriesURL, "an http or https URL such as http://entries:9090"))
	}
	if c.EmbeddablesURL != "" && !isAddress(c.EmbeddablesURL) {
		faults = append(faults, config.Invalid("EMBEDDABLES_INTERNAL_URL", c.EmbeddablesURL, "an http or https URL such as http://embeddables:9090"))
	}
	if c.Days < 0 || c.Days > maxDays {
		faults = append(faults, config.Invalid("RETENTION_DAYS", c.Days, "0 to 36500"))
	}
	if c.Timeout < time.Second {
		faults = append(faults, config.Invalid("RETENTION_TIMEOUT", c.Timeout, "1s or more"))
	}
	return errors.Join(faults...)
}

// isAddress reports whether text is the URL of a service, without a query, a fragment or a user.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}
