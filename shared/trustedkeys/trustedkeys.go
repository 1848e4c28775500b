// Package trustedkeys compares a given key with the configured keys of trusted clients: services, administrators and
// the edge. The time of a comparison depends on the length of the given key and the number of keys alone.
package trustedkeys

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"

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

// MinLength is the length of the shortest key. A shorter one could be guessed.
const MinLength = 16

// Check reports the first key that is shorter than MinLength, as the fault of the variable that lists the keys. The
// error shows no key.
func Check(variable string, keys []config.Secret) error {
	for i, k := range keys {
		if n := len(k.Reveal()); n < MinLength {
			return &config.Fault{Variable: variable, Problem: fmt.Sprintf("is wrong: key %d has %d characters; allowed: keys of %d or more characters, comma-separated", i+1, n, MinLength)}
		}
	}
	return nil
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
