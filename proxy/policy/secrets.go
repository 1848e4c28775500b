package policy

import (
	"bytes"
	"slices"
	"sync"
	"time"
)

// FormerLife is how long the proxy searches answers for a value that an endpoint could send before, such as the value
// of before a rotation. A target may have stored the value, and the value may still be valid.
const FormerLife = 24 * time.Hour

// MaxFormer is how many former values the proxy keeps for an endpoint. Above, the proxy drops the oldest values. The
// search takes about 45 KiB of memory for a token of 1.5 KB, and slows down with each value.
const MaxFormer = 64

// Secrets are the values that the proxy searches for in the answers of an endpoint: those of its credentials, and
// former ones. A Secrets is immutable.
type Secrets struct {
	values [][]byte    // each once; those in force, and then the former values from the oldest on
	until  []time.Time // by value: when the value is dropped; zero: the value is in force

	once    sync.Once
	derived any
}

// Derive returns the result of derive for the values, such as a search for them. The first call computes the result,
// and later calls return the same result. derive must not change the values.
func (s *Secrets) Derive(derive func(values [][]byte) any) any {
	s.once.Do(func() { s.derived = derive(s.values) })
	return s.derived
}

// newSecrets returns the Secrets for credentials, with the values of before that are not in force any more. Values of
// fewer than MinScrubbed bytes are left out: an endpoint that searches its answers never sends them. If nothing has
// changed, the result is before, so that nothing is derived anew.
func newSecrets(credentials []*Credential, before *Secrets, now time.Time) *Secrets {
	s := &Secrets{}
	for _, c := range credentials {
		if c.Value.Len() >= MinScrubbed && !s.has(c.Value.Reveal()) {
			s.values, s.until = append(s.values, c.Value.Reveal()), append(s.until, time.Time{})
		}
	}
	if before == nil {
		return s
	}
	inForce := len(s.values)
	former := func(value []byte, until time.Time) {
		if now.Before(until) && !s.has(value) {
			s.values, s.until = append(s.values, value), append(s.until, until)
		}
	}
	for i, value := range before.values {
		if !before.until[i].IsZero() {
			former(value, before.until[i])
		}
	}
	for i, value := range before.values {
		if before.until[i].IsZero() {
			former(value, now.Add(FormerLife))
		}
	}
	if over := len(s.values) - inForce - MaxFormer; over > 0 {
		s.values, s.until = slices.Delete(s.values, inForce, inForce+over), slices.Delete(s.until, inForce, inForce+over)
	}
	if slices.EqualFunc(s.values, before.values, bytes.Equal) && slices.Equal(s.until, before.until) {
		return before
	}
	return s
}

func (s *Secrets) has(value []byte) bool {
	return slices.ContainsFunc(s.values, func(v []byte) bool { return bytes.Equal(v, value) })
}
