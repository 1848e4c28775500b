package policy

import (
	"crypto/x509"
	"slices"
	"sync"
	"time"
)

// Access is how an endpoint authenticates its callers.
type Access uint8

// The kinds of access.
const (
	ByOrigin Access = iota // by the Origin header: what browsers enforce, and other clients can forge
	ByKey                  // by an API key with the scope proxy:use
)

// String returns the name in manifests.
func (a Access) String() string {
	if a == ByKey {
		return "key"
	}
	return "origin"
}

// Endpoint allows requests to destinations, for one project and environment.
type Endpoint struct {
	Name         string // unique among all endpoints
	Project      string
	Environment  string
	Access       Access
	Origins      []Rule
	Destinations []Rule
	Methods      []string      // none: all
	Credentials  []*Credential // those that may be used; of an id at most one
	Ports        []uint16      // none: 443, and 80 where AllowHTTP
	AllowHTTP    bool          // lets credentials go over http
	KeepSecrets  bool          // answers are not scrubbed
	// PassUnreadable passes answers in encodings that cannot be searched, where answers are scrubbed.
	PassUnreadable bool
	// Roots are the authorities that the target's certificate is checked against. Nil: the system's.
	Roots *x509.CertPool
	// RootsID identifies Roots: equal ids mean equal certificates.
	RootsID string

	Limits   Limits
	Timeouts Timeouts

	once    sync.Once
	derived Derived
}

// Derived is data that a caller computed from the values of an endpoint's credentials, such as a search for them.
type Derived interface {
	// Zero overwrites the parts that contain values.
	Zero()
}

// Derive returns the result of derive for the endpoint's credentials. The first call makes it, and the endpoint keeps it
// for later calls. The Snapshot overwrites it together with the values.
func (e *Endpoint) Derive(derive func([]*Credential) Derived) Derived {
	e.once.Do(func() { e.derived = derive(e.Credentials) })
	return e.derived
}

// zero overwrites the data that was derived from the values.
func (e *Endpoint) zero() {
	e.once.Do(func() {})
	if e.derived != nil {
		e.derived.Zero()
	}
}

// Limits bound what an endpoint's callers can ask for. 0 is no limit.
type Limits struct {
	PerSecond     int   // requests a second
	Burst         int   // at once, after a time of none
	Concurrent    int   // requests at a time
	RequestBytes  int64 // of a request's body, as sent
	ResponseBytes int64 // of an answer's body, as read from the target
}

// Timeouts bound how long a request's phases may take. 0 is no limit.
type Timeouts struct {
	Connect time.Duration // to a connection, and as long again for its TLS handshake
	Headers time.Duration // from the end of the request to the beginning of the answer
	Idle    time.Duration // without a byte of either body
	Total   time.Duration // all of it
}

// The defaults of what an endpoint does not say.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultHeadersTimeout = 60 * time.Second
	DefaultIdleTimeout    = 5 * time.Minute
	DefaultConcurrent     = 256
)

// Scrubs reports whether answers are searched for the values of the endpoint's credentials: unless the endpoint says
// otherwise, when it has a credential that it may send.
func (e *Endpoint) Scrubs() bool {
	return !e.KeepSecrets && slices.ContainsFunc(e.Credentials, func(c *Credential) bool { return c.Value.Len() >= MinScrubbed })
}

// allowsOrigin reports whether a request of that origin, "" for none, may use the endpoint.
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

// credential returns the credential of that id that the endpoint may use, nil when there is none.
func (e *Endpoint) credential(id string) *Credential {
	i := slices.IndexFunc(e.Credentials, func(c *Credential) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return e.Credentials[i]
}
