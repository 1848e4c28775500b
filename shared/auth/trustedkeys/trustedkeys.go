// Package trustedkeys compares a given key with the configured keys of trusted clients: services, administrators and
// the edge. The time of a comparison depends on the length of the given key and the number of keys alone. A client address
// has a rate of refused keys.
package trustedkeys

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/http/apierr"
)

// Set holds the hashes of keys, and counts the refused ones. It may be used from several goroutines.
type Set struct {
	hashes  [][sha256.Size]byte
	refused *Refusals
}

// New returns the set of keys. An empty set has no key.
func New(keys []config.Secret) *Set {
	s := &Set{make([][sha256.Size]byte, len(keys)), NewRefusals(RefusedPerSecond)}
	for i, k := range keys {
		s.hashes[i] = sha256.Sum256([]byte(k.Reveal()))
	}
	return s
}

// Rule says which keys [Valid] allows.
const Rule = "keys of 16 to 256 visible ASCII characters"

// Valid reports whether key is long enough not to be guessed, and can be sent in a header and listed.
func Valid(key string) bool {
	if len(key) < 16 || len(key) > 256 {
		return false
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' || key[i] == ',' {
			return false
		}
	}
	return true
}

// Check reports the first key that is not [Valid], as the fault of the variable that lists the keys. The error shows no
// key.
func Check(variable string, keys []config.Secret) error {
	for i, k := range keys {
		if key := k.Reveal(); !Valid(key) {
			return &config.Fault{Variable: variable, Problem: fmt.Sprintf("is wrong: key %d of %d bytes is not allowed; allowed: %s, comma-separated", i+1, len(key), Rule)}
		}
	}
	return nil
}

// ErrUnknown is returned for a key that a set does not have.
var ErrUnknown = errors.New("the key is not one of those configured")

// Find returns the index of key in the list that New was given. For a key that the list has twice, the index is wrong. So a
// caller that uses the index must refuse such a list. The error is ErrUnknown, or the apierr RateLimited: the client's
// network has sent too many unknown keys, and key is not compared.
func (s *Set) Find(network, key string) (int, error) {
	if len(s.hashes) == 0 {
		return 0, ErrUnknown // nothing can be guessed
	}
	if s.refused.Over(network) {
		return 0, ErrTooMany()
	}
	found := s.index(key)
	if found < 0 {
		s.refused.Count(network)
		return 0, ErrUnknown
	}
	return found, nil
}

// Has reports whether key is one of the set. It compares key in any case, so that a good one is never refused because of
// others in its network. The error is the apierr RateLimited: key is unknown, and the client's network has sent too many
// such keys.
func (s *Set) Has(network, key string) (bool, error) {
	switch {
	case len(s.hashes) == 0:
		return false, nil // nothing can be guessed
	case s.index(key) >= 0:
		return true, nil
	case s.refused.Over(network):
		return false, ErrTooMany()
	}
	s.refused.Count(network)
	return false, nil
}

// index returns the index of key, or -1.
func (s *Set) index(key string) int {
	given := sha256.Sum256([]byte(key))
	found := 0
	for i := range s.hashes {
		found |= subtle.ConstantTimeCompare(given[:], s.hashes[i][:]) * (i + 1)
	}
	return found - 1
}

// ErrTooMany returns the answer to a client whose network has sent too many refused keys.
func ErrTooMany() error {
	return apierr.New(apierr.RateLimited, "Too many refused keys came from this address. Try again after the time that Retry-After gives.").After(window)
}
