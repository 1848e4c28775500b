package httpserver

import (
	"net/http"

	"github.com/lectern-dev/lectern/shared/limits"
)

// EdgeKeyHeader is the header in which the edge sends its key to a service. The key shows that the request is from the
// edge.
const EdgeKeyHeader = "Lectern-Edge-Key"

// takeEdgeKey removes the edge's key from the headers of a request, valid or not, so that no handler sees the key or
// sends it on. fromEdge reports whether the request had exactly one such header, with a key of EDGE_KEYS. The error is
// the answer to a wrong key from a network that has sent too many wrong keys.
func (o *origin) takeEdgeKey(r *http.Request) (fromEdge bool, err error) {
	given := r.Header[EdgeKeyHeader]
	if given == nil {
		return false, nil
	}
	delete(r.Header, EdgeKeyHeader)
	if len(given) != 1 {
		return false, nil
	}
	address, _ := o.client(r, false)
	return o.edge.Has(limits.NetworkOf(address), given[0])
}
