package policy

import (
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/proxy/secret"
)

// Place is a part of a request that can hold a credential's value, or a set of such parts with one bit for each part.
// The field places of a Credential becomes a Place.
type Place uint8

// The parts of a request that can hold a credential's value.
const (
	InHeader Place = 1 << iota
	InURL
	InBody
)

// Anywhere is the Place that contains all parts of a request.
const Anywhere = InHeader | InURL | InBody

var placeNames = [...]string{"header", "url", "body"}

// String returns the names of the parts in p, such as "header,body".
func (p Place) String() string {
	var names []string
	for i, n := range placeNames {
		if p&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}

// MaxValue is the longest value of a credential, in bytes.
const MaxValue = secret.MaxBytes

// MinScrubbed is the shortest value that the proxy searches for in answers, in bytes. Only endpoints that do not scrub
// answers can use a shorter value.
const MinScrubbed = secret.MinSearchable

// Bounds of a credential's paths in bodies: the number of paths, and the length of one path in bytes.
const (
	MaxBodyPaths = secret.MaxBodyPaths
	MaxBodyPath  = secret.MaxBodyPath
)

// Credential is a secret value, and the requests of one project and environment that may use the value.
type Credential struct {
	ID           string // "cred_…", see [ValidID]
	Project      string
	Environment  string
	Value        secret.Value
	Destinations []Rule // restrict the endpoint's destinations further; none: no further restriction
	Places       Place  // 0: anywhere
	// Headers may hold the value. Their names are in canonical form. None: any.
	Headers []string
	// BodyPaths are where in a body the value may stand; see [Use]. None: anywhere.
	BodyPaths []string
}

// ValidID reports whether text is a credential's id: "cred_" and 1 to 64 letters, digits, "_" or "-".
func ValidID(text string) bool { return secret.IsID(text) }

// allowsPlace reports whether the credential's value may be put into all parts in place.
func (c *Credential) allowsPlace(place Place) bool { return c.Places == 0 || c.Places&place == place }

// allowsURL reports whether the credential's value may be sent to a normalised scheme://host[:port]/path.
func (c *Credential) allowsURL(url string) bool {
	return len(c.Destinations) == 0 || anyURL(c.Destinations, url)
}

// allowsHeader reports whether the credential's value may be put into the header with this canonical name.
func (c *Credential) allowsHeader(header string) bool {
	return len(c.Headers) == 0 || slices.Contains(c.Headers, header)
}

// IsAnywhereInBody reports whether the value may be anywhere in a body. Package explain warns of such a credential,
// because targets often store and return bodies.
func (c *Credential) IsAnywhereInBody() bool { return c.allowsPlace(InBody) && len(c.BodyPaths) == 0 }

// allowsPath reports whether the value may be at this path of a body. The path is "" in a body without paths, such as
// text, and never equals a path in BodyPaths.
func (c *Credential) allowsPath(path string) bool {
	return len(c.BodyPaths) == 0 || slices.Contains(c.BodyPaths, path)
}

// fitsHeader reports whether a header can hold the value: the value has no control character except tabs (RFC 9110,
// section 5.5).
func (c *Credential) fitsHeader() bool {
	for _, b := range c.Value.Reveal() {
		if b < ' ' && b != '\t' || b == 0x7F {
			return false
		}
	}
	return true
}
