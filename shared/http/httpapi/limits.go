package httpapi

import "github.com/lectern-dev/lectern/shared/config"

// Limits bound how many records a request may ask for. Limits are a part of a service's configuration.
type Limits struct {
	// The greatest value of the parameter limit, in records.
	MaxLimit int `env:"MAX_LIMIT" envDefault:"1000000"`
}

// Validate returns a [*config.Fault] if MAX_LIMIT is not from 1 to 1,000,000,000.
func (l Limits) Validate() error {
	const most = 1_000_000_000
	if l.MaxLimit < 1 || l.MaxLimit > most {
		return config.Invalid("MAX_LIMIT", l.MaxLimit, "1 to 1000000000")
	}
	return nil
}
