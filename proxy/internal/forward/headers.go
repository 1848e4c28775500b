package forward

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/proxy/policy"
)

// The headers by which callers and the proxy talk to each other.
const (
	ProjectHeader     = "X-Project-Id"
	EnvironmentHeader = "X-Environment"
	KeyHeader         = "X-Proxy-Api-Key"
	TemplatingHeader  = "X-Use-Body-Templating"
	// SuccessHeader is "true" on the target's answers and "false" on the proxy's own.
	SuccessHeader = "X-Proxy-Worker-Success"
)

// removed lists the headers of a request that do not go on to the target: those for the proxy, those with which the
// browser speaks to our host, those of the connection (RFC 9110, section 7.6.1), those of other proxies and those of
// traces.
var removed = []string{
	TemplatingHeader, ProjectHeader, EnvironmentHeader, KeyHeader, "Cookie", "Cookie2",
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
	"Forwarded", "Via", "X-Real-Ip", "True-Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Host", "X-Original-Uri",
	"X-Original-Forwarded-For", "X-Envoy-External-Address", "Cf-Connecting-Ip", "Fastly-Client-Ip", "X-Scheme",
	"Traceparent", "Tracestate", "Baggage", "B3", "Uber-Trace-Id", "X-Cloud-Trace-Context", "X-Amzn-Trace-Id",
}

// removedPrefixes begin the names of further such headers.
var removedPrefixes = []string{"X-Forwarded-", "X-B3-"}

// dropped lists the headers of an answer that would speak for our host.
var dropped = []string{
	"Set-Cookie", "Set-Cookie2", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Report-To", "Reporting-Endpoints", "Nel",
	"Public-Key-Pins", "Public-Key-Pins-Report-Only", "Expect-Ct", "Service-Worker-Allowed", "Origin-Agent-Cluster", "Accept-Ch", "Critical-Ch",
	"Sec-Session-Registration", "Set-Login", SuccessHeader,
}

// droppedPrefixes begin the names of further such headers: the target's own CORS headers.
var droppedPrefixes = []string{"Access-Control-"}

func isRemoved(name string) bool { return isListed(name, removed, removedPrefixes) }

func isDropped(name string) bool { return isListed(name, dropped, droppedPrefixes) }

func isListed(name string, names, prefixes []string) bool {
	return slices.Contains(names, name) || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// headerToSend returns the headers of a request that go on to the target, and the credentials that they name.
func headerToSend(sent http.Header) (http.Header, []policy.Use) {
	header := make(http.Header, len(sent))
	var uses []policy.Use
	listed := connectionHeaders(sent)
	for name, values := range sent {
		if isRemoved(name) || listed[name] {
			continue
		}
		before := len(uses)
		for _, v := range values {
			template.Each(v, func(id string) { uses = append(uses, policy.Use{ID: id, Place: policy.InHeader}) })
		}
		if name == "X-Api-Key" && len(uses) == before {
			continue // a key for our own API
		}
		header[name] = values
	}
	if httpguts.HeaderValuesContainsToken(sent["Te"], "trailers") {
		header["Te"] = []string{"trailers"} // the proxy passes trailers on; the rest of TE is for the connection
	}
	// A map has no order, and which of several faults is reported must not change from one try to the next.
	slices.SortStableFunc(uses, func(a, b policy.Use) int { return strings.Compare(a.ID, b.ID) })
	return header, uses
}

// connectionHeaders returns the names that the Connection header lists (RFC 9110, section 7.6.1).
func connectionHeaders(sent http.Header) map[string]bool {
	listed := map[string]bool{}
	for _, line := range sent["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			listed[textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	return listed
}

// drop removes the headers or trailers of an answer that would speak for our host.
func drop(h http.Header) {
	for name := range h {
		if isDropped(name) {
			delete(h, name)
		}
	}
}
