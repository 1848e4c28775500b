// Package app is the credential proxy as a service: it holds the configuration and connects the parts.
package app

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/lectern-dev/lectern/proxy/egress"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/telemetry"
)

// Config holds the settings of the proxy, which the program reads from environment variables. A field with env:"-" has
// no variable: code and tests set it.
type Config struct {
	// The folder of manifests: Credential and ProxyEndpoint of lectern.dev/v1alpha1, and Secrets. Not set: the objects
	// of the Kubernetes cluster, in the build for Kubernetes. Required in other builds.
	Manifests string `env:"PROXY_MANIFESTS"`

	Egress egress.Config

	// The largest body with placeholders, in bytes, before and after their replacement.
	MaxTemplatedBody int64 `env:"MAX_TEMPLATED_BODY" envDefault:"10485760"`

	// How much memory all bodies with placeholders may take together, in bytes. One endpoint gets at most half of it,
	// and one client address without a key at most a quarter.
	TemplatedMemory int64 `env:"PROXY_TEMPLATED_MEMORY" envDefault:"268435456"`

	// How many requests without a key one client address may have in flight. Further ones get 429. 0: any number.
	ClientConcurrent int `env:"PROXY_CLIENT_CONCURRENT" envDefault:"64"`

	// TotalTimeout is how long a request may take in total. Streams, and endpoints with a total time of their own, are
	// exempt. Tests set it; 0: 15 minutes, after which a client no longer waits.
	TotalTimeout time.Duration `env:"-"`

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

// Validate returns an error that lists the proxy's own settings that are not allowed, or nil. It does not check the
// nested settings, such as HTTP.
func (c Config) Validate() error {
	var faults []error
	if c.MaxTemplatedBody < 1 || c.MaxTemplatedBody > 1<<30 {
		faults = append(faults, config.Invalid("MAX_TEMPLATED_BODY", c.MaxTemplatedBody, "1 to 1073741824"))
	}
	// One client may take a quarter. A growing body needs memory for its old and its new buffer.
	if c.TemplatedMemory/4 <= 2*c.MaxTemplatedBody {
		faults = append(faults, config.Invalid("PROXY_TEMPLATED_MEMORY", c.TemplatedMemory, "more than eight times MAX_TEMPLATED_BODY"))
	}
	if c.ClientConcurrent < 0 {
		faults = append(faults, config.Invalid("PROXY_CLIENT_CONCURRENT", c.ClientConcurrent, "0 or more"))
	}
	return errors.Join(faults...)
}

// Require returns an error if serve has no source of a policy: neither a folder in PROXY_MANIFESTS nor a Source in code.
func (c Config) Require(command string) error {
	if command == "serve" && c.Manifests == "" && c.Source == nil {
		return config.Invalid("PROXY_MANIFESTS", "", "the path of a folder of manifests")
	}
	return nil
}
