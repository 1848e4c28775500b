// Package trustedkeys compares a given key with the configured keys of trusted clients: services, administrators and
// the edge. The time of a comparison depends on the length of the given key and the number of keys alone.
package trustedkeys

import (
	"crypto/sha256"
	"crypto/subtle"

	"github.com/lectern-dev/lectern/shared/config"
)

// Set holds the hashes of keys. An empty Set has no key.
type Set [][sha256.Size]byte

// New returns the set of keys. An empty key matches nothing.
func New(keys []config.Secret) Set {
	s := make(Set, len(keys))
	for i, k := range keys {
		if !k.IsZero() {
			s[i] = sha256.Sum256([]byte(k.Reveal()))
		}
	}
	return s
}

// Find returns the index of key in the list that New was given, or -1 if the list does not have it. For a key that the
// list has twice, the index is wrong, but never -1. So a caller that uses the index must refuse such a list.
func (s Set) Find(key string) int {
	given := sha256.Sum256([]byte(key))
	found := 0
	for i := range s {
		found |= subtle.ConstantTimeCompare(given[:], s[i][:]) * (i + 1)
	}
	return found - 1
}
