package api

import (
	"strings"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// Config limits the length of a page, and says whether clients need a key.
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

// Validate reports an EXPERIMENTS_AUTH that is not none, optional or required.
func (c Config) Validate() error {
	switch c.Access {
	case accessNone, accessOptional, accessRequired:
		return nil
	}
	return config.Invalid("EXPERIMENTS_AUTH", c.Access, strings.Join([]string{accessNone, accessOptional, accessRequired}, ", "))
}

// protect wraps h in the check of keys that EXPERIMENTS_AUTH demands. With required, a request needs a key with the
// scope experiments:read. With optional, guard checks a key only if the request has one. With none, guard checks no
// key.
func (c Config) protect(guard *auth.Guard, h httpapi.HandlerFunc) httpapi.HandlerFunc {
	switch c.Access {
	case accessRequired:
		return guard.Protect(auth.ExperimentsRead, h)
	case accessOptional:
		return guard.Optional(auth.ExperimentsRead, h)
	}
	return guard.Anonymous(h)
}
