package forward

import (
	"encoding/base64"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/proxy/policy"
)

// The headers of the proxy's own protocol. The proxy sends SuccessHeader, and callers send the other headers.
const (
	ProjectHeader     = "X-Project-Id"
	EnvironmentHeader = "X-Environment"
	KeyHeader         = "X-Proxy-Api-Key"
	TemplatingHeader  = "X-Use-Body-Templating"
	// SuccessHeader is "true" on the target's answers and "false" on the proxy's own.
	SuccessHeader = "X-Proxy-Worker-Success"
)

// headerList is a set of canonical header names. A prefix in the list stands for all names that begin with the prefix.
type headerList struct {
	names    map[string]bool
	prefixes []string
}

func newHeaderList(names, prefixes []string) headerList {
	l := headerList{names: make(map[string]bool, len(names)), prefixes: prefixes}
	for _, name := range names {
		l.names[name] = true
	}
	return l
}

// has reports whether the list contains a header name, or a prefix of the name. "_" in the name counts as "-".
func (l headerList) has(name string) bool {
	name = dashed(name)
	return l.names[name] || slices.ContainsFunc(l.prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// dashed returns a canonical header name with "-" for each "_", again in canonical form. Servers that pass headers to
// programs as variables (RFC 3875, section 4.1.18) cannot distinguish "-" from "_".
func dashed(name string) string {
	if !strings.Contains(name, "_") {
		return name
	}
	return textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

// remove deletes from h the headers whose names the list contains.
func (l headerList) remove(h http.Header) {
	maps.DeleteFunc(h, func(name string, _ []string) bool { return l.has(name) })
}

// removeTrailers deletes from h the trailers whose names the list contains, and the fields that must not be trailers. A
// receiver that merges trailers into the headers would obey such fields (RFC 9110, section 6.5.1).
func (l headerList) removeTrailers(h http.Header) {
	maps.DeleteFunc(h, func(name string, _ []string) bool {
		return l.has(name) || neverTrailers.has(name) || commandsSomeCaches(name) || !httpguts.ValidTrailerHeader(dashed(name))
	})
}

// neverTrailers lists headers that must not be trailers although [httpguts.ValidTrailerHeader] allows them. Such a
// header controls how a receiver treats an answer (RFC 7231, section 7.1), or the proxy itself sets the header.
var neverTrailers = newHeaderList([]string{
	"Age", "Date", "Expires", "Location", "Retry-After", "Vary", "Warning", "Content-Security-Policy", "X-Content-Type-Options",
}, nil)

// apiKeyHeader holds a key for our own API, which the proxy does not send to targets. A value with a placeholder is for
// the target, and is sent.
const apiKeyHeader = "X-Api-Key"

// droppedFromRequests lists request headers that the proxy does not pass on:
//
//   - headers for the proxy, and cookies of the proxy's host
//   - hop-by-hop headers (RFC 9110, section 7.6.1), and those of other proxies
//   - headers that make a target use another client address, URL or method
//   - trace headers
var droppedFromRequests = newHeaderList([]string{
	TemplatingHeader, ProjectHeader, EnvironmentHeader, KeyHeader, "Cookie", "Cookie2",
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
	"Forwarded", "X-Forwarded", "Forwarded-For", "X-Forward-For", "Via", "X-Scheme",
	"X-Real-Ip", "Real-Ip", "X-Client-Ip", "Client-Ip", "True-Client-Ip", "X-True-Client-Ip", "X-Cluster-Client-Ip", "Http-Client-Ip",
	"Proxy-Client-Ip", "Wl-Proxy-Client-Ip", "X-Proxyuser-Ip", "X-Remote-Addr", "Remote-Addr", "X-Remote-Ip", "X-Originating-Ip",
	"X-Original-Forwarded-For", "Cf-Connecting-Ip", "Cf-Connecting-Ipv6", "Cf-Pseudo-Ipv4", "Fastly-Client-Ip", "Fly-Client-Ip",
	"X-Azure-Clientip", "X-Azure-Socketip", "X-Appengine-User-Ip", "X-Appengine-Remote-Addr", "X-Nf-Client-Connection-Ip", "X-Vercel-Forwarded-For",
	"Do-Connecting-Ip", "Incap-Client-Ip", "X-Sucuri-Clientip", "Ali-Cdn-Real-Ip", "Cdn-Src-Ip",
	"X-Original-Url", "X-Original-Uri", "X-Original-Path", "X-Original-Host", "X-Original-Method",
	"X-Rewrite-Url", "X-Rewrite-Uri", "X-Override-Url", "X-Waws-Unencoded-Url", "X-Host", "X-Http-Host-Override",
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "X-Method",
	"Traceparent", "Tracestate", "Baggage", "B3", "Uber-Trace-Id", "X-Cloud-Trace-Context", "X-Amzn-Trace-Id",
}, []string{"X-Forwarded-", "X-Envoy-", "X-B3-"})

// droppedFromAnswers lists response headers that the proxy does not pass on. With these headers, a target would set
// cookies and policies for the proxy's host, or imitate the proxy. A target would also control the servers and caches
// in front of the proxy.
var droppedFromAnswers = newHeaderList([]string{
	"Set-Cookie", "Set-Cookie2", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Report-To", "Reporting-Endpoints", "Nel",
	"Public-Key-Pins", "Public-Key-Pins-Report-Only", "Expect-Ct", "Service-Worker-Allowed", "Origin-Agent-Cluster", "Accept-Ch", "Critical-Ch",
	"Sec-Session-Registration", "Set-Login", SuccessHeader,
}, []string{"Access-Control-", "X-Accel-", "X-Sendfile", "X-Lighttpd-", "X-Litespeed-", "X-Reproxy-", "X-Envoy-"})

// droppedWithUnderscore lists headers that the proxy reads or writes itself. The proxy removes a request header that
// has the same name spelled with "_", because a target may treat both spellings as one header.
var droppedWithUnderscore = newHeaderList([]string{
	"Accept-Encoding", "Content-Encoding", "Content-Length", "Content-Type", "If-Range",
}, nil)

// headerToSend returns the headers of a request that go on to the target, and the credentials that the headers name.
// The error refuses a placeholder after an incomplete escape.
func headerToSend(sent http.Header) (http.Header, []policy.Use, error) {
	header := make(http.Header, len(sent))
	var uses []policy.Use
	listed := connectionHeaders(sent)
	for name, values := range sent {
		if droppedFromRequests.has(name) || listed[dashed(name)] || strings.Contains(name, "_") && droppedWithUnderscore.has(name) {
			continue
		}
		if dashed(name) == apiKeyHeader {
			values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !template.Has(v) })
			if len(values) == 0 {
				continue
			}
		}
		for _, v := range values {
			v, _ := headerText(name, v)
			if !strings.Contains(v, "{{") {
				continue
			}
			if escape := template.Dangling([]byte(v)); escape != "" {
				return nil, nil, danglingFault(name, escape)
			}
			template.Each(v, func(id string) { uses = append(uses, policy.Use{ID: id, Place: policy.InHeader, Header: name}) })
		}
		header[name] = values
	}
	if httpguts.HeaderValuesContainsToken(sent["Te"], "trailers") {
		header["Te"] = []string{"trailers"} // the proxy passes trailers on; the rest of TE is for the connection
	}
	return header, uses, nil
}

// headerText returns the text of a header's value in which the proxy searches for placeholders. The text is usually the
// value. For Basic credentials (RFC 7617, section 2) with a placeholder, the text is the decoded user and password, and
// basic is true.
func headerText(name, value string) (text string, basic bool) {
	scheme, encoded, _ := strings.Cut(value, " ")
	if name != "Authorization" || !strings.EqualFold(scheme, "Basic") {
		return value, false
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil || !template.Has(string(decoded)) {
		return value, false
	}
	return string(decoded), true
}

// trailersToSend returns the names of a request's trailers that go on to the target, without values. The proxy replaces
// no placeholders in trailers, so an API key in a trailer is for our own API and is dropped.
func trailersToSend(sent http.Header) http.Header {
	trailer := make(http.Header, len(sent))
	for name := range sent {
		if dashed(name) != apiKeyHeader {
			trailer[name] = nil
		}
	}
	droppedFromRequests.removeTrailers(trailer)
	return trailer
}

// connectionHeaders returns the set of names that the Connection header lists, nil without such a header. The headers
// with these names are for one connection only, so the proxy does not pass them on (RFC 9110, section 7.6.1).
func connectionHeaders(sent http.Header) map[string]bool {
	if len(sent["Connection"]) == 0 {
		return nil
	}
	listed := map[string]bool{}
	for _, line := range sent["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			listed[dashed(textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))] = true
		}
	}
	return listed
}
