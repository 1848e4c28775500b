package limits

import "github.com/lectern-dev/lectern/shared/config"

// WaitOptions bound how many requests of the change feed one process lets wait for changes.
type WaitOptions struct {
	// How many requests of the change feed may wait for changes at once; they do not count in MAX_IN_FLIGHT. One project
	// may have an eighth of them, at the edge one client network, if TRUSTED_PROXIES tells which it is. One more gets 503,
	// or 429 over the share. 0: any number.
	MaxWaiting int `env:"MAX_WAITING" envDefault:"4096"`
}

// Validate reports a negative MAX_WAITING.
func (o WaitOptions) Validate() error {
	if o.MaxWaiting < 0 {
		return config.Invalid("MAX_WAITING", o.MaxWaiting, "0 or more")
	}
	return nil
}

// Pool returns a new pool that bounds the requests that wait for changes, by MaxWaiting. One holder may have an eighth
// of the pool.
func (o WaitOptions) Pool() *Pool {
	return NewPool("waits", int64(o.MaxWaiting), Eighth(int64(o.MaxWaiting)))
}
