package httpserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"

	"github.com/lectern-dev/lectern/shared/config"
)

// EdgeKeyHeader is the header in which the edge sends its key.
const EdgeKeyHeader = "Lectern-Edge-Key"

// edgeKeys are the hashes of EDGE_KEYS.
type edgeKeys [][sha256.Size]byte

func newEdgeKeys(keys []config.Secret) edgeKeys {
	hashes := make(edgeKeys, len(keys))
	for i, key := range keys {
		hashes[i] = sha256.Sum256([]byte(key.Reveal()))
	}
	return hashes
}

// take removes the edge's key from the headers of a request, valid or not, so that no handler sees or sends it on. It
// reports whether the request had exactly one, and a valid one.
func (e edgeKeys) take(h http.Header) bool {
	given := h[EdgeKeyHeader]
	if given == nil {
		return false
	}
	delete(h, EdgeKeyHeader)
	if len(given) != 1 {
		return false
	}
	hash := sha256.Sum256([]byte(given[0]))
	found := 0
	for i := range e { // all of them, so that the time does not depend on which key matches
		found |= subtle.ConstantTimeCompare(hash[:], e[i][:])
	}
	return found == 1
}

// isEdgeKey reports whether key is long enough not to be guessed, and can be sent in a header and listed.
func isEdgeKey(key string) bool {
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
