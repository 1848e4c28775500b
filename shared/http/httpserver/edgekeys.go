package httpserver

import (
	"net/http"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// EdgeKeyHeader is the header in which the edge sends its key.
const EdgeKeyHeader = "Lectern-Edge-Key"

// takeEdgeKey removes the edge's key from the headers of a request, valid or not, so that no handler sees or sends it on.
// It reports whether the request had exactly one, and one of EDGE_KEYS. The error is the answer to a wrong key from a
// network that has sent too many of them.
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
	return o.edge.Has(httpapi.Network(address), given[0])
}
