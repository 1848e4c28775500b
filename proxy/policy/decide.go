package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Request is the part of a request that endpoints judge.
type Request struct {
	Origin string // the Origin header's value; "" for none
	Keyed  bool   // it bears a key that is good for the project, with the scope proxy:use
	Method string
	Scheme string // of the target
	Port   uint16 // of the target
	URL    string // scheme://host[:port]/path of the target as sent
	Uses   []Use
}

// Use is a credential that a request wants in a place.
type Use struct {
	ID     string
	Place  Place
	Header string // the canonical name, with InHeader
}

// Fault is why an endpoint does not allow a request. A greater one is found later: the endpoint that gets
// furthest is the one that its callers mean.
type Fault uint8

// The faults, in the order in which they are looked for.
const (
	NoEndpoint     Fault = iota // the project has none in that environment
	BadOrigin                   // not among the origins
	NoKey                       // access needs a key
	BadDestination              // not among the destinations
	BadPort                     // not among the ports
	BadMethod                   // not among the methods
	PlainHTTP                   // http, with a credential
	BadCredential               // unknown, not allowed, or not for this place or destination
	None                        // it is allowed
)

// Verdict is the decision of one endpoint about a request.
type Verdict struct {
	Endpoint *Endpoint
	Fault    Fault
	// Use is the one that is refused, with BadCredential.
	Use Use
	// Why explains a BadCredential to the authors of the manifests, in the log. Callers are not told.
	Why string
	// Credentials are those of the request, each once, with None.
	Credentials []*Credential
}

// Judge returns the verdict of each endpoint of the project and environment, the best first.
func (s *Scope) Judge(r *Request) []Verdict {
	if s == nil {
		return nil
	}
	verdicts := make([]Verdict, 0, len(s.Endpoints))
	for _, e := range s.Endpoints {
		verdicts = append(verdicts, judge(e, r))
	}
	slices.SortStableFunc(verdicts, func(a, b Verdict) int { return int(b.Fault) - int(a.Fault) })
	return verdicts
}

// Decide returns the verdict of the first endpoint that allows the request, or of the one that gets
// furthest.
func (s *Scope) Decide(r *Request) Verdict {
	best := Verdict{}
	if s == nil {
		return best
	}
	for _, e := range s.Endpoints {
		v := judge(e, r)
		if v.Fault == None {
			return v
		}
		if v.Fault > best.Fault {
			best = v
		}
	}
	return best
}

func judge(e *Endpoint, r *Request) Verdict {
	v := Verdict{Endpoint: e}
	switch {
	case !e.allowsOrigin(r.Origin):
		v.Fault = BadOrigin
	case e.Access == ByKey && !r.Keyed:
		v.Fault = NoKey
	case !e.AllowsURL(r.URL):
		v.Fault = BadDestination
	case !e.allowsPort(r.Scheme, r.Port):
		v.Fault = BadPort
	case !e.allowsMethod(r.Method):
		v.Fault = BadMethod
	case r.Scheme != "https" && len(r.Uses) > 0 && !e.AllowHTTP:
		v.Fault = PlainHTTP
	default:
		judgeUses(&v, r)
	}
	return v
}

// judgeUses completes the verdict on a request whose credentials are all that is left to judge.
func judgeUses(v *Verdict, r *Request) {
	for _, use := range r.Uses {
		c := v.Endpoint.credential(use.ID)
		allowedURL := slices.Contains(v.Credentials, c) // an earlier use was judged; patterns are slow
		if why := v.Endpoint.refuseUse(c, use, r.URL, allowedURL); why != "" {
			v.Fault, v.Use, v.Why, v.Credentials = BadCredential, use, why, nil
			return
		}
		if !allowedURL {
			v.Credentials = append(v.Credentials, c)
		}
	}
	v.Fault = None
}

// refuseUse returns why the credential c, nil for an unknown one, cannot be used for a request to url; "" when it can. With
// allowedURL, its destinations are known to allow the URL.
func (e *Endpoint) refuseUse(c *Credential, use Use, url string, allowedURL bool) string {
	switch {
	case c == nil:
		return "not among the endpoint's credentials"
	case !c.allowsPlace(use.Place), !allowedURL && !c.allowsURL(url):
		return fmt.Sprintf("the credential does not allow this destination, or not in the %s", use.Place)
	case use.Place == InHeader && !c.allowsHeader(use.Header):
		return fmt.Sprintf("the credential may stand in the headers %s, and not in %s", strings.Join(c.Headers, ", "), use.Header)
	case use.Place == InHeader && !c.fitsHeader():
		return "the value holds a line break or another control character, and cannot stand in a header"
	case !e.KeepSecrets && c.Value.Len() < MinScrubbed:
		return fmt.Sprintf("the value has fewer than %d bytes, and the endpoint scrubs answers", MinScrubbed)
	}
	return ""
}

// AllowsAfter reports whether a request that the verdict allows may still go to url, which is its target with
// the credentials in it.
func (v *Verdict) AllowsAfter(url string) bool {
	return v.Endpoint.AllowsURL(url) && !slices.ContainsFunc(v.Credentials, func(c *Credential) bool {
		return !c.allowsURL(url)
	})
}

// WantsKey reports whether any endpoint of the project and environment that allows the origin asks for a key.
func (s *Scope) WantsKey(origin string) bool {
	return s != nil && slices.ContainsFunc(s.Endpoints, func(e *Endpoint) bool {
		return e.Access == ByKey && e.allowsOrigin(origin)
	})
}

// AllowsOrigin reports whether any endpoint of the project and environment allows the origin.
func (s *Scope) AllowsOrigin(origin string) bool {
	return s != nil && origin != "" && slices.ContainsFunc(s.Endpoints, func(e *Endpoint) bool { return e.allowsOrigin(origin) })
}

// String describes the fault for the authors of the manifests.
func (f Fault) String() string {
	return [...]string{
		NoEndpoint:     "no endpoint of this project and environment",
		BadOrigin:      "the origin is not allowed",
		NoKey:          "an API key with the scope proxy:use is needed",
		BadDestination: "the destination is not allowed",
		BadPort:        "the port is not allowed",
		BadMethod:      "the method is not allowed",
		PlainHTTP:      "a credential would go over http",
		BadCredential:  "a credential is not allowed",
		None:           "allowed",
	}[f]
}

// String describes the verdict for the authors of the manifests.
func (v Verdict) String() string {
	var b strings.Builder
	if v.Endpoint != nil {
		b.WriteString(v.Endpoint.Name + ": ")
	}
	b.WriteString(v.Fault.String())
	if v.Fault == BadCredential {
		fmt.Fprintf(&b, ": %s in the %s: %s", v.Use.ID, v.Use.Place, v.Why)
	}
	return b.String()
}
