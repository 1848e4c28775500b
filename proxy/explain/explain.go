// Package explain reports which rule of a policy allows or refuses a given request. It runs the proxy's own code up to
// the point of sending, and calls no target. It does not check limits of rate and concurrency, or the addresses of
// targets.
package explain

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/lectern-dev/lectern/proxy/internal/forward"
	"github.com/lectern-dev/lectern/proxy/policy"
)

// Question describes a request to the proxy. [Ask] returns the decision about the request.
type Question struct {
	// Project and Environment are the values of X-Project-ID and X-Environment.
	Project, Environment string
	// Origin is the Origin header; "" for none.
	Origin string
	// Keyed reports that the request has a valid API key for the project, with the scope proxy:use.
	Keyed bool
	// Method; "" is GET.
	Method string
	// Target is the URL, not escaped.
	Target string
	// Header holds further headers.
	Header http.Header
	// Body is the request's body.
	Body []byte
}

// Report is the decision about the request in a [Question], with its reasons.
type Report struct {
	// Allowed reports that the proxy would send the request, or grant the preflight. The check for public addresses
	// comes later, after the name is resolved.
	Allowed bool
	// Code and Message are the error that the caller would get otherwise.
	Code, Message string
	// Why gives details of a refusal that the caller does not see.
	Why string
	// Preflight reports that the request is a preflight that the proxy grants.
	Preflight bool
	// Endpoint is the endpoint that allows the request, or that comes closest to it; "" for none.
	Endpoint string
	// Target is the normalised scheme://host[:port]/path that destinations are matched against.
	Target string
	// Credentials are the ids that the request would use.
	Credentials []string
	// Advice says how to narrow what is allowed.
	Advice []string
	// Verdicts are the verdicts of all endpoints of the project and environment, one line each, the best first. A
	// preflight or an invalid request has none.
	Verdicts []string
}

// Ask returns the decision of the policy s about the request q. It calls no target. It returns an error if the method
// of q is not valid.
func Ask(s *policy.Snapshot, q Question) (Report, error) {
	if q.Method == "" {
		q.Method = http.MethodGet
	}
	var body io.Reader
	if len(q.Body) > 0 {
		body = bytes.NewReader(q.Body)
	}
	r, err := http.NewRequest(q.Method, "http://proxy.invalid/proxy?url="+url.QueryEscape(q.Target), body)
	if err != nil {
		return Report{}, fmt.Errorf("explain: %w", err)
	}
	for name, values := range q.Header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	r.Header.Set(forward.ProjectHeader, q.Project)
	r.Header.Set(forward.EnvironmentHeader, q.Environment)
	if q.Origin != "" {
		r.Header.Set("Origin", q.Origin)
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	e := forward.Explain(s, r, q.Keyed)
	report := Report{
		Allowed: e.Refusal == nil, Why: e.Why, Preflight: e.Preflight, Endpoint: e.Endpoint, Target: e.Target, Credentials: e.Credentials,
	}
	if e.Refusal != nil {
		report.Code, report.Message = string(e.Refusal.Code()), e.Refusal.Message()
	}
	for _, id := range e.Loose {
		report.Advice = append(report.Advice, id+" may stand anywhere in a body, and targets often store and return bodies: name headers or bodyPaths in its Credential")
	}
	for _, v := range e.Verdicts {
		report.Verdicts = append(report.Verdicts, v.String())
	}
	return report, nil
}

// String returns the report as lines of text for people: the decision, the matched target, reasons and verdicts.
func (r Report) String() string {
	var b strings.Builder
	switch {
	case r.Allowed && r.Preflight:
		b.WriteString("granted: the preflight of this origin for this destination\n")
	case r.Allowed:
		fmt.Fprintf(&b, "allowed by endpoint %s\n", r.Endpoint)
	default:
		fmt.Fprintf(&b, "refused: %s: %s\n", r.Code, r.Message)
	}
	if r.Target != "" {
		fmt.Fprintf(&b, "matched: %s\n", r.Target)
	}
	if len(r.Credentials) > 0 {
		fmt.Fprintf(&b, "credentials: %s\n", strings.Join(r.Credentials, ", "))
	}
	if r.Why != "" {
		fmt.Fprintf(&b, "because: %s\n", r.Why)
	}
	for _, a := range r.Advice {
		fmt.Fprintf(&b, "advice: %s\n", a)
	}
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	return b.String()
}
