// Package app is the credential proxy as a service: its configuration, and how its parts are put together.
package app

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/httpserver"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// Config is what the proxy is told.
type Config struct {
	// The folder of manifests: Credential and ProxyEndpoint of lectern.dev/v1alpha1, and Secrets. Not set: the
	// objects of the Kubernetes cluster, where the program was built to read them; else required.
	Manifests string `env:"PROXY_MANIFESTS"`

	// How often the folder is looked at for changes.
	ManifestsPoll time.Duration `env:"PROXY_MANIFESTS_POLL" envDefault:"500ms"`

	// Ranges of addresses, as CIDRs, that may be connected to beside those of the Internet. Not set: none.
	AllowedRanges []netip.Prefix `env:"PROXY_ALLOWED_RANGES"`

	// The largest body that values are put into, before and after, in bytes.
	MaxTemplatedBody int64 `env:"MAX_TEMPLATED_BODY" envDefault:"10485760"`

	// How much memory all bodies may take together while values are put into them, in bytes.
	TemplatedMemory int64 `env:"PROXY_TEMPLATED_MEMORY" envDefault:"268435456"`

	// The largest headers of an answer, in bytes.
	MaxAnswerHeaderBytes int64 `env:"PROXY_MAX_ANSWER_HEADER_BYTES" envDefault:"262144"`

	HTTP      httpserver.Config
	Auth      auth.Config
	Pool      pgdb.Options
	Telemetry telemetry.Config

	// Source keeps the policy up to date. Nil: the folder of manifests.
	Source func(SourceOptions) (Source, error) `env:"-"`

	// Resolver looks up the names of targets. Nil: the system's.
	Resolver *net.Resolver `env:"-"`

	// LogOutput takes the log. Nil: standard error.
	LogOutput io.Writer `env:"-"`
}

// Validate reports the values that are not allowed.
func (c Config) Validate() error {
	var faults []error
	if c.ManifestsPoll < time.Millisecond {
		faults = append(faults, config.Invalid("PROXY_MANIFESTS_POLL", c.ManifestsPoll, "1ms or more"))
	}
	if c.MaxTemplatedBody < 1 || c.MaxTemplatedBody > 1<<30 {
		faults = append(faults, config.Invalid("MAX_TEMPLATED_BODY", c.MaxTemplatedBody, "1 to 1073741824"))
	}
	// While a body grows, its memory is taken twice: for what was read, and for the larger room.
	if c.TemplatedMemory <= 2*c.MaxTemplatedBody {
		faults = append(faults, config.Invalid("PROXY_TEMPLATED_MEMORY", c.TemplatedMemory, "more than twice MAX_TEMPLATED_BODY"))
	}
	if c.MaxAnswerHeaderBytes < 4<<10 {
		faults = append(faults, config.Invalid("PROXY_MAX_ANSWER_HEADER_BYTES", c.MaxAnswerHeaderBytes, "4096 or more"))
	}
	return errors.Join(faults...)
}

// checkSource reports that nothing says where the policy is.
func (c Config) checkSource() error {
	if c.Manifests == "" && c.Source == nil {
		return &config.Fault{Variable: "PROXY_MANIFESTS", Problem: "is not set, and is required"}
	}
	return nil
}
