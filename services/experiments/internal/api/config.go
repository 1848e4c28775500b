package api

import (
	"strings"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// Config bounds the requests of clients, and says whether they need a key.
type Config struct {
	httpapi.Limits

	// Whether reading requires an API key with the scope experiments:read. none: never. optional: a key that is sent
	// is checked. required: always.
	Access string `env:"EXPERIMENTS_AUTH" envDefault:"none"`
}

// The values of EXPERIMENTS_AUTH.
const (
	accessNone     = "none"
	accessOptional = "optional"
	accessRequired = "required"
)

// Validate reports the values that are not allowed.
func (c Config) Validate() error {
	switch c.Access {
	case accessNone, accessOptional, accessRequired:
		return nil
	}
	return config.Invalid("EXPERIMENTS_AUTH", c.Access, strings.Join([]string{accessNone, accessOptional, accessRequired}, ", "))
}

// protect wraps h with guard as the configuration requires.
func (c Config) protect(guard *auth.Guard, h httpapi.HandlerFunc) httpapi.HandlerFunc {
	switch c.Access {
	case accessRequired:
		return guard.Protect(auth.ExperimentsRead, h)
	case accessOptional:
		return guard.Optional(auth.ExperimentsRead, h)
	}
	return guard.Anonymous(h)
}
