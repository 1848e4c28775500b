// Package explain owns the answer to "why is this refused, and by what": which rule of a policy lets a given
// request through, or keeps it. It runs the proxy's own code up to the moment of sending, and so calls nobody
// and says the same as the proxy.
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

// Question is a request that somebody may send.
type Question struct {
	// Project and Environment are those of X-Project-ID and X-Environment.
	Project, Environment string
	// Origin is the Origin header; "" for none.
	Origin string
	// Keyed says that the request bears an API key that is good for the project, with the scope proxy:use.
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

// Report is the answer.
type Report struct {
	// Allowed says that the request would be sent. Whether its address is a public one is only known when
	// it is looked up.
	Allowed bool
	// Code and Message are what the caller would be told otherwise.
	Code, Message string
	// Why says more about a refusal than the caller is told.
	Why string
	// Preflight says that the request is one: granted when Allowed.
	Preflight bool
	// Endpoint is the one that allows the request, or that comes nearest to it; "" for none.
	Endpoint string
	// Target is what destinations are matched against: the normalised scheme://host[:port]/path.
	Target string
	// Credentials are the ids that would be used.
	Credentials []string
	// Verdicts is what each endpoint of the project and environment says, one line each, the best first.
	Verdicts []string
}

// Ask answers a question by a policy. It calls nobody. The error is a question that is no HTTP request.
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
	for _, v := range e.Verdicts {
		report.Verdicts = append(report.Verdicts, v.String())
	}
	return report, nil
}

// String gives the report as lines for people.
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
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	return b.String()
}
