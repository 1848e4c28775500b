package kubetest

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Requests counts the requests of a client to the API server, by verb and path.
type Requests struct {
	mu  sync.Mutex
	by  map[string]int
	cut bool
}

// Cut fails all further requests.
func (r *Requests) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = true
}

// Count counts the requests of clients with config from now on.
func (r *Requests) Count(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counting{r, next}
	})
}

type counting struct {
	requests *Requests
	next     http.RoundTripper
}

// RoundTrip counts and sends.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.mu.Lock()
	if c.requests.by == nil {
		c.requests.by = map[string]int{}
	}
	c.requests.by[r.Method+" "+r.URL.Path]++
	cut := c.requests.cut
	c.requests.mu.Unlock()
	if cut {
		return nil, errors.New("kubetest: cut off")
	}
	return c.next.RoundTrip(r)
}

// All returns the counts so far.
func (r *Requests) All() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.by)
}

// Writes returns the number of writes so far, except those of the leader's Lease and of events.
func (r *Requests) Writes() int {
	n := 0
	for request, count := range r.All() {
		if !strings.HasPrefix(request, http.MethodGet+" ") && !strings.Contains(request, "/leases/") && !strings.Contains(request, "/events") {
			n += count
		}
	}
	return n
}
