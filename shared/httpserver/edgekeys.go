package httpserver

import (
	"net/http"

	"github.com/lectern-dev/lectern/shared/trustedkeys"
)

// EdgeKeyHeader is the header in which the edge sends its key.
const EdgeKeyHeader = "Lectern-Edge-Key"

// takeEdgeKey removes the edge's key from the headers of a request, valid or not, so that no handler sees or sends it
// on. It reports whether the request had exactly one, and one of keys.
func takeEdgeKey(h http.Header, keys trustedkeys.Set) bool {
	given := h[EdgeKeyHeader]
	if given == nil {
		return false
	}
	delete(h, EdgeKeyHeader)
	return len(given) == 1 && keys.Find(given[0]) >= 0
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
