package policy

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/proxy/secret"
)

// FormerLife is how long the proxy searches answers for a value that an endpoint could send before, such as the value
// of before a rotation. A target may have stored the value, and the value may still be valid.
const FormerLife = 24 * time.Hour

// MaxFormer is how many former values the proxy keeps for an endpoint. Above, the proxy drops those that end first. The
// search takes about 45 KiB of memory for a token of 1.5 KB, and slows down with each value.
const MaxFormer = 64

// Secrets are the values that the proxy searches for in the answers of an endpoint: those of its credentials, and
// former ones. A Secrets is immutable.
type Secrets struct {
	values [][]byte    // each once; those in force, and then the former values by their end
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

// Former is a value that an endpoint could send before, and the time until which the proxy searches for it.
type Former struct {
	Value secret.Value
	Until time.Time
}

// newSecrets returns the Secrets for an endpoint. They have its former values, and the values of before that are not in
// force any more. Values of fewer than MinScrubbed bytes are left out: an endpoint that searches its answers never sends
// them. If nothing has changed, the result is before, so that nothing is derived anew.
func newSecrets(e *Endpoint, before *Secrets, now time.Time) *Secrets {
	s := &Secrets{}
	for _, c := range e.Credentials {
		s.add(c.Value.Reveal(), time.Time{})
	}
	former := slices.Clone(e.Former)
	if before != nil {
		for i, value := range before.values {
			if until := before.until[i]; !until.IsZero() {
				former = append(former, Former{secret.New(value), until})
			}
		}
		for i, value := range before.values {
			if before.until[i].IsZero() {
				former = append(former, Former{secret.New(value), now.Add(FormerLife)})
			}
		}
	}
	// Of two ends of a value, that of the endpoint counts.
	known := &Secrets{}
	former = slices.DeleteFunc(former, func(f Former) bool {
		return !now.Before(f.Until) || s.has(f.Value.Reveal()) || !known.add(f.Value.Reveal(), f.Until)
	})
	slices.SortStableFunc(former, func(a, b Former) int { return a.Until.Compare(b.Until) })
	for _, f := range former[max(0, len(former)-MaxFormer):] {
		s.add(f.Value.Reveal(), f.Until)
	}
	if before != nil && slices.EqualFunc(s.values, before.values, bytes.Equal) && slices.EqualFunc(s.until, before.until, time.Time.Equal) {
		return before
	}
	return s
}

// add adds a value, and reports whether it did. It adds no value that s has, or that no endpoint searches for.
func (s *Secrets) add(value []byte, until time.Time) bool {
	if len(value) < MinScrubbed || s.has(value) {
		return false
	}
	s.values, s.until = append(s.values, value), append(s.until, until)
	return true
}

func (s *Secrets) has(value []byte) bool {
	return slices.ContainsFunc(s.values, func(v []byte) bool { return bytes.Equal(v, value) })
}
