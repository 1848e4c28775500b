package policy

import (
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/proxy/secret"
)

// Place is a part of a request that can hold a credential's value, or a set of such parts. It is the field places of a
// Credential.
type Place uint8

// The parts of a request.
const (
	InHeader Place = 1 << iota
	InURL
	InBody
)

// Anywhere is the set of all parts.
const Anywhere = InHeader | InURL | InBody

var placeNames = [...]string{"header", "url", "body"}

// String returns the names of the parts, separated by commas.
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
// can use a shorter one.
const MinScrubbed = secret.MinSearchable

// Bounds of a credential's paths in bodies.
const (
	MaxBodyPaths = secret.MaxBodyPaths
	MaxBodyPath  = secret.MaxBodyPath
)

// Credential is a secret value, and the requests that it may be used for.
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

// allowsPlace reports whether the credential may be put into a place.
func (c *Credential) allowsPlace(place Place) bool { return c.Places == 0 || c.Places&place == place }

// allowsURL reports whether the credential may be sent to a normalised scheme://host[:port]/path.
func (c *Credential) allowsURL(url string) bool {
	return len(c.Destinations) == 0 || anyURL(c.Destinations, url)
}

// allowsHeader reports whether the value may be put into a header of that canonical name.
func (c *Credential) allowsHeader(header string) bool {
	return len(c.Headers) == 0 || slices.Contains(c.Headers, header)
}

// IsAnywhereInBody reports whether the value may stand anywhere in a body, which targets often store and return.
func (c *Credential) IsAnywhereInBody() bool { return c.allowsPlace(InBody) && len(c.BodyPaths) == 0 }

// allowsPath reports whether a path of a body may hold the value. A named path is never "".
func (c *Credential) allowsPath(path string) bool {
	return len(c.BodyPaths) == 0 || slices.Contains(c.BodyPaths, path)
}

// fitsHeader reports whether a header can hold the value: it has no control character except tabs (RFC 9110,
// section 5.5).
func (c *Credential) fitsHeader() bool {
	for _, b := range c.Value.Reveal() {
		if b < ' ' && b != '\t' || b == 0x7F {
			return false
		}
	}
	return true
}
