// Package trustedkeys compares a given key with the configured keys of trusted clients: services, administrators and
// the edge. The time of a comparison depends only on the length of the given key and the number of keys. Each client
// network may send a limited number of refused keys a second.
package trustedkeys

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/limits"
)

// Set holds the hashes of the configured keys, and counts the refused keys of each client network. A Set may be used
// from several goroutines.
type Set struct {
	hashes  [][sha256.Size]byte
	refused *limits.Refusals
}

// New returns the Set of keys. An empty Set refuses every key.
func New(keys []config.Secret) *Set {
	s := &Set{make([][sha256.Size]byte, len(keys)), limits.NewRefusals()}
	for i, k := range keys {
		s.hashes[i] = sha256.Sum256([]byte(k.Reveal()))
	}
	return s
}

// Rule describes the keys that [Valid] allows, for error messages.
const Rule = "keys of 16 to 256 visible ASCII characters"

// Valid reports whether key has 16 to 256 visible ASCII characters and no comma. Such a key can be sent in a header and
// be an element of a comma-separated list.
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

// Check returns a [*config.Fault] about the first key that is not [Valid], or nil. variable is the environment variable
// that lists the keys. The error shows no key.
func Check(variable string, keys []config.Secret) error {
	for i, k := range keys {
		if key := k.Reveal(); !Valid(key) {
			return &config.Fault{Variable: variable, Problem: fmt.Sprintf("is wrong: key %d of %d bytes is not allowed; allowed: %s, comma-separated", i+1, len(key), Rule)}
		}
	}
	return nil
}

// ErrUnknown is the error of [Set.Find] for a key that the Set does not have.
const ErrUnknown = apierr.RefusedUnknown

// Find returns the index of key in the list that New got. The index is wrong for a key that is in the list twice, so a
// caller that uses the index must refuse such a list. The error is ErrUnknown, or the apierr RateLimited if the
// client's network has sent too many unknown keys. While the network is over that limit, Find does not compare key, so
// a right key is refused too.
func (s *Set) Find(network, key string) (int, error) {
	if len(s.hashes) == 0 {
		return 0, ErrUnknown // nothing can be guessed
	}
	if err := s.refused.Check(network); err != nil {
		return 0, err
	}
	found := s.index(key)
	if found < 0 {
		s.refused.Count(network)
		return 0, ErrUnknown
	}
	return found, nil
}

// Has reports whether key is in the Set. Has compares key first, so that refused keys from the same network never block
// a right key. The error is the apierr RateLimited: key is unknown, and the client's network has sent too many unknown
// keys.
func (s *Set) Has(network, key string) (bool, error) {
	if len(s.hashes) == 0 {
		return false, nil // nothing can be guessed
	}
	if s.index(key) >= 0 {
		return true, nil
	}
	return false, s.refused.Refuse(network, nil)
}

// index returns the index of key, or -1. index compares every key, so that its time does not show which key matched.
func (s *Set) index(key string) int {
	given := sha256.Sum256([]byte(key))
	found := 0
	for i := range s.hashes {
		found |= subtle.ConstantTimeCompare(given[:], s.hashes[i][:]) * (i + 1)
	}
	return found - 1
}
