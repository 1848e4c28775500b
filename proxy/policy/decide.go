package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Request holds the properties of a request that decide whether an endpoint allows it.
type Request struct {
	Origin string // the Origin header's value; "" for none
	Keyed  bool   // the request has a valid key for the project, with the scope proxy:use
	Method string
	Scheme string // of the target
	Port   uint16 // of the target
	URL    string // scheme://host[:port]/path of the target as sent
	Uses   []Use
}

// Use is one placeholder of a request: the id of a credential, and the part of the request that holds the placeholder.
type Use struct {
	ID     string
	Place  Place
	Header string // the canonical name, with InHeader
	// Path is where in the body the placeholder stands, with InBody. It is the JSON pointer of a string, or the name of a
	// form's field or part. "" for other text.
	Path string
}

// Fault is the reason why an endpoint does not allow a request. A greater fault belongs to a later check. So the
// endpoint with the greatest fault is most likely the endpoint that the caller means.
type Fault uint8

// The faults of a request, in the order of the checks.
const (
	NoEndpoint     Fault = iota // the project has no endpoint in the environment
	BadOrigin                   // the origin is not allowed
	NoKey                       // the endpoint requires a key
	BadDestination              // the destination is not allowed
	BadPort                     // the port is not allowed
	BadMethod                   // the method is not allowed
	PlainHTTP                   // the request has a credential and uses http
	BadCredential               // unknown, not allowed, or not for this part of the request or this destination
	None                        // the endpoint allows the request
)

// Verdict is the decision of one endpoint about a request: the fault that refuses the request, or the credentials that
// the request uses.
type Verdict struct {
	Endpoint *Endpoint
	Fault    Fault
	// Use is the refused use of a credential; only set with BadCredential.
	Use Use
	// Why explains BadCredential to the authors of the manifests, in the log. Callers never see it.
	Why string
	// Credentials are the credentials of the request, each once; only set with None.
	Credentials []*Credential
}

// Judge returns the verdict of each endpoint of the project and environment, the verdict with the greatest fault first.
// A nil Scope has no endpoints.
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

// Decide returns the verdict of the first endpoint that allows the request. If no endpoint allows the request, Decide
// returns the first verdict with the greatest fault. A nil Scope gives the fault NoEndpoint.
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

// judgeUses does the last check of v: whether its endpoint allows each use of a credential in r. It sets the fault to
// None or BadCredential.
func judgeUses(v *Verdict, r *Request) {
	for _, use := range r.Uses {
		c := v.Endpoint.credential(use.ID)
		allowedURL := slices.Contains(v.Credentials, c) // an earlier use passed; patterns are slow
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

// refuseUse returns the reason why a request to url may not use the credential c, and "" if it may. A nil c is an
// unknown credential. allowedURL reports that the credential's destinations are known to allow the URL.
func (e *Endpoint) refuseUse(c *Credential, use Use, url string, allowedURL bool) string {
	switch {
	case c == nil:
		return "not among the endpoint's credentials"
	case !c.allowsPlace(use.Place), !allowedURL && !c.allowsURL(url):
		return fmt.Sprintf("the credential does not allow this destination, or not in the %s", use.Place)
	case use.Place == InHeader && !c.allowsHeader(use.Header):
		return fmt.Sprintf("the credential is allowed in the headers %s, and not in %s", strings.Join(c.Headers, ", "), use.Header)
	case use.Place == InBody && !c.allowsPath(use.Path):
		return fmt.Sprintf("in a body the credential is allowed at %s, and not at %q", strings.Join(c.BodyPaths, ", "), use.Path)
	case use.Place == InHeader && !c.fitsHeader():
		return "the value contains a line break or another control character, which a header cannot hold"
	case !e.KeepSecrets && c.Value.Len() < MinScrubbed:
		return fmt.Sprintf("the value has fewer than %d bytes, and the endpoint scrubs answers", MinScrubbed)
	}
	return ""
}

// AllowsAfter reports whether a request that the verdict allows may still go to url. The URL is the target of the
// request after the proxy has inserted the values.
func (v *Verdict) AllowsAfter(url string) bool {
	return v.Endpoint.AllowsURL(url) && !slices.ContainsFunc(v.Credentials, func(c *Credential) bool {
		return !c.allowsURL(url)
	})
}

// WantsKey reports whether any endpoint of the project and environment allows the origin and requires a key.
func (s *Scope) WantsKey(origin string) bool {
	return s != nil && slices.ContainsFunc(s.Endpoints, func(e *Endpoint) bool {
		return e.Access == ByKey && e.allowsOrigin(origin)
	})
}

// String describes the fault for the authors of the manifests, such as "the port is not allowed".
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

// String describes the verdict for the authors of the manifests: the endpoint's name, the fault and, for a refused
// credential, the reason.
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
