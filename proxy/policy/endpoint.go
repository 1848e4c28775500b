package policy

import (
	"crypto/x509"
	"slices"
	"sync/atomic"
	"time"
)

// Access is how an endpoint authenticates its callers: by their origin or by an API key.
type Access uint8

// The ways in which an endpoint authenticates its callers.
const (
	ByOrigin Access = iota // by the Origin header, which browsers enforce and other clients can forge
	ByKey                  // by an API key with the scope proxy:use
)

// Endpoint allows requests to its destinations, for one project and environment. A request must match all fields of one
// Endpoint, such as Origins, Methods and Ports.
type Endpoint struct {
	Name         string // unique among all endpoints
	Project      string
	Environment  string
	Access       Access
	Origins      []Rule
	Destinations []Rule
	Methods      []string      // none: all
	Credentials  []*Credential // the credentials that requests may use; an id means one of them
	Ports        []uint16      // none: 443, and 80 with AllowHTTP
	AllowHTTP    bool          // allows credentials over http
	KeepSecrets  bool          // does not scrub answers
	// PassUnreadable passes answers in encodings that the proxy cannot search. It has no effect with KeepSecrets.
	PassUnreadable bool
	// Roots are the certificate authorities that the endpoint trusts. Nil: the system's.
	Roots *x509.CertPool
	// RootsID identifies Roots: equal ids mean equal certificates.
	RootsID string
	// Former are values that the endpoint could send before, as far as they are known from outside the [Store].
	Former []Former

	Limits   Limits
	Timeouts Timeouts

	secrets *atomic.Pointer[Secrets] // shared by all endpoints of this name that a Store has had
}

// Secrets returns the values to search for in the endpoint's answers at this moment. The endpoint must be in a
// Snapshot. After [Store.Replace], an Endpoint of an earlier Snapshot also returns the values of the new one.
func (e *Endpoint) Secrets() *Secrets { return e.secrets.Load() }

// Limits bound the requests of an endpoint. A limit of 0 is no limit, except Burst, which has an effect only with
// PerSecond and is then at least 1.
type Limits struct {
	PerSecond     int   // requests a second
	Burst         int   // requests at once after an idle period
	Concurrent    int   // requests in flight
	RequestBytes  int64 // length of a request's body, as sent
	ResponseBytes int64 // length of an answer's body, as read from the target, before it is decoded
}

// Timeouts bound the phases of a request. A timeout of 0 is no limit, with two exceptions. Without Connect, a
// connection has a minute. Without Total, the proxy's own total time bounds requests that are no streams.
type Timeouts struct {
	Connect time.Duration // until the connection exists, and as long again for its TLS handshake
	Headers time.Duration // from the end of the request to the headers of the answer
	Idle    time.Duration // without a byte of the request's body, or of the answer's as read from the target
	Total   time.Duration // the whole request
}

// The defaults of the timeouts and of the number of requests in flight, for an endpoint whose manifest sets none.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultHeadersTimeout = 10 * time.Minute
	DefaultIdleTimeout    = 5 * time.Minute
	DefaultConcurrent     = 256
)

// Scrubs reports whether the proxy searches answers for the values of the endpoint's credentials. The proxy does so if
// KeepSecrets is false and a value, or a former one, has at least [MinScrubbed] bytes.
func (e *Endpoint) Scrubs() bool { return !e.KeepSecrets && len(e.Secrets().values) > 0 }

// allowsOrigin reports whether a request with the origin may use the endpoint. The origin "" means a request without
// the header Origin, which only the access ByKey allows.
func (e *Endpoint) allowsOrigin(origin string) bool {
	if origin == "" {
		return e.Access == ByKey
	}
	return ValidOrigin(origin) && slices.ContainsFunc(e.Origins, func(r Rule) bool { return r.allowsOrigin(origin) })
}

func (e *Endpoint) allowsMethod(method string) bool {
	return len(e.Methods) == 0 || slices.Contains(e.Methods, method)
}

func (e *Endpoint) allowsPort(scheme string, port uint16) bool {
	if len(e.Ports) > 0 {
		return slices.Contains(e.Ports, port)
	}
	return port == 443 || port == 80 && scheme == "http" && e.AllowHTTP
}

// AllowsURL reports whether a normalised scheme://host[:port]/path is among the endpoint's destinations.
func (e *Endpoint) AllowsURL(url string) bool { return anyURL(e.Destinations, url) }

func anyURL(rules []Rule, url string) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool { return r.allowsURL(url) })
}

// credential returns the endpoint's credential with the id, or nil if the endpoint has no such credential.
func (e *Endpoint) credential(id string) *Credential {
	i := slices.IndexFunc(e.Credentials, func(c *Credential) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return e.Credentials[i]
}
