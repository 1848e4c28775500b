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

	// Ranges of addresses, as CIDRs, that may not be connected to, also where they are public or among the allowed ones:
	// networks of pods or nodes with public addresses. Not set: none.
	DeniedRanges []netip.Prefix `env:"PROXY_DENIED_RANGES"`

	// The largest body that values are put into, before and after, in bytes.
	MaxTemplatedBody int64 `env:"MAX_TEMPLATED_BODY" envDefault:"10485760"`

	// How much memory all bodies may take together while values are put into them, in bytes. Half of it is for one
	// endpoint at most, and a quarter for one client address without a key.
	TemplatedMemory int64 `env:"PROXY_TEMPLATED_MEMORY" envDefault:"268435456"`

	// How long a body that values are put into may take to come.
	TemplatedReadTimeout time.Duration `env:"PROXY_TEMPLATED_READ_TIMEOUT" envDefault:"1m"`

	// How many requests without a key one client address may have in flight, over all endpoints; more are answered
	// 429. 0: any number.
	ClientConcurrent int `env:"PROXY_CLIENT_CONCURRENT" envDefault:"64"`

	// How long a request may take in all where its endpoint sets no total time and neither the request nor the answer is
	// a stream. 0: any time.
	TotalTimeout time.Duration `env:"PROXY_TOTAL_TIMEOUT" envDefault:"15m"`

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
	// One client may take a quarter. While a body grows, its memory is taken twice: for what was read, and for the larger
	// room.
	if c.TemplatedMemory/4 <= 2*c.MaxTemplatedBody {
		faults = append(faults, config.Invalid("PROXY_TEMPLATED_MEMORY", c.TemplatedMemory, "more than eight times MAX_TEMPLATED_BODY"))
	}
	if c.TemplatedReadTimeout <= 0 {
		faults = append(faults, config.Invalid("PROXY_TEMPLATED_READ_TIMEOUT", c.TemplatedReadTimeout, "more than 0s"))
	}
	if c.ClientConcurrent < 0 {
		faults = append(faults, config.Invalid("PROXY_CLIENT_CONCURRENT", c.ClientConcurrent, "0 or more"))
	}
	if c.TotalTimeout < 0 {
		faults = append(faults, config.Invalid("PROXY_TOTAL_TIMEOUT", c.TotalTimeout, "0s or more"))
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
