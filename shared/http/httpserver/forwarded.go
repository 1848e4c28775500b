package httpserver

import (
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/shared/trustedkeys"
)

// origin finds out the client's address and the URL that the client used. Only trusted proxies and the edge may forward
// an address or a host. Any client may forward the scheme https.
type origin struct {
	publicURL string // without a slash at its end; empty to take the request's
	trusted   Proxies
	edge      *trustedkeys.Set
	inside    bool // clients are within the platform, and each is its own peer

	// unnamed is called when a peer that is not believed forwards https, and neither a host nor PUBLIC_URL is known. A
	// proxy in front may have replaced the request's own host.
	unnamed func(r *http.Request)
}

// believes reports whether the server believes all forwarding headers of r. fromEdge reports that r had a key of the
// edge.
func (o *origin) believes(r *http.Request, fromEdge bool) bool {
	return fromEdge || len(o.trusted.CIDRs) > 0 && o.trusted.trust(parseAddress(r.RemoteAddr))
}

// client returns the client's IP address. known reports that the address belongs to one client and not to a proxy for
// all clients. For requests from the edge, known is false, because the edge bounds the shares of networks itself.
//
// Behind the edge or a proxy in CIDRs, client reads X-Forwarded-For from its end, up to the first address that is not
// in CIDRs. If TRUSTED_PROXIES is private and the peer is in a private network, the address is the last public address
// in X-Forwarded-For. A text that is no address ends the search. Otherwise the address is the peer's, which may belong
// to a proxy for all clients.
func (o *origin) client(r *http.Request, fromEdge bool) (address string, known bool) {
	peer := parseAddress(r.RemoteAddr)
	switch {
	case o.believes(r, fromEdge):
		client := peerAddress(r.RemoteAddr)
		for hop := range hopsOf(r.Header) {
			if !hop.IsValid() {
				break
			}
			if client = hop.String(); !o.trusted.trust(hop) {
				break
			}
		}
		return client, !fromEdge
	case o.trusted.Private && isPrivate(peer):
		for hop := range hopsOf(r.Header) {
			if !hop.IsValid() {
				break
			}
			if isPublic(hop) {
				return hop.String(), true
			}
		}
	}
	return peerAddress(r.RemoteAddr), o.inside || len(o.trusted.CIDRs) > 0
}

// hopsOf yields the addresses in X-Forwarded-For, the last first. For a text that is no address, hopsOf yields the
// invalid Addr.
func hopsOf(h http.Header) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, line := range slices.Backward(h["X-Forwarded-For"]) {
			for _, hop := range slices.Backward(strings.Split(line, ",")) {
				if !yield(parseAddress(strings.TrimSpace(hop))) {
					return
				}
			}
		}
	}
}

// baseURL returns PUBLIC_URL without a slash at its end. If PUBLIC_URL is not set, baseURL returns the scheme and host
// that the client used, or "" without a valid host.
func (o *origin) baseURL(r *http.Request, fromEdge bool) string {
	if o.publicURL != "" {
		return o.publicURL
	}
	return o.requestURL(r, fromEdge)
}

// requestURL returns the scheme and host that the client used, or PUBLIC_URL if PUBLIC_URL has the same host. The
// result is empty if the client named no host that is valid in a URL. The scheme is https if the client or a proxy
// forwards https, or if PUBLIC_URL has https. Over an http link, a client would send its key in clear text.
func (o *origin) requestURL(r *http.Request, fromEdge bool) string {
	scheme, host := "http", r.Host
	https, forwarded := forwardedFrom(r.Header)
	publicScheme, public, _ := strings.Cut(o.publicURL, "://")
	if r.TLS != nil || https || publicScheme == "https" {
		scheme = "https"
	}
	switch {
	case o.believes(r, fromEdge):
		if hosts := r.Header["X-Forwarded-Host"]; fromEdge && len(hosts) == 1 && hosts[0] == "" {
			return "" // the client named no host; r.Host is the address at which the edge reaches this service
		}
		if sane(forwarded) {
			host = forwarded
		}
	case https && o.publicURL == "":
		o.unnamed(r)
	}
	if !sane(host) {
		return ""
	}
	if public == host || strings.HasPrefix(public, host+"/") {
		return o.publicURL
	}
	return scheme + "://" + host
}

// forwardedFrom reports whether any proxy forwards that the client used https, because a proxy behind the end of TLS adds
// http. The host is the host that the nearest proxy forwards, the last of several. forwardedFrom reads Forwarded (RFC
// 7239) only without X-Forwarded headers: a proxy that writes X-Forwarded headers may pass a client's Forwarded on.
func forwardedFrom(h http.Header) (https bool, host string) {
	if h["X-Forwarded-For"] != nil || h["X-Forwarded-Proto"] != nil || h["X-Forwarded-Host"] != nil {
		for proto := range valuesOf(h["X-Forwarded-Proto"]) {
			https = https || strings.EqualFold(proto, "https")
		}
		return https, lastOf(h["X-Forwarded-Host"])
	}
	for hop := range valuesOf(h["Forwarded"]) {
		host = ""
		for pair := range strings.SplitSeq(hop, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			value = strings.Trim(value, `"`)
			switch strings.ToLower(name) {
			case "proto":
				https = https || strings.EqualFold(value, "https")
			case "host":
				host = value
			}
		}
	}
	return https, host
}

// valuesOf yields the comma-separated values of a header.
func valuesOf(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range lines {
			for value := range strings.SplitSeq(line, ",") {
				if !yield(strings.TrimSpace(value)) {
					return
				}
			}
		}
	}
}

// lastOf returns the last of a header's comma-separated values, or "" without the header.
func lastOf(lines []string) (last string) {
	for last = range valuesOf(lines) {
	}
	return last
}

// peerAddress returns the IP of "ip:port", "[ip]:port", "[ip]" or "ip". The IP is not checked.
func peerAddress(hostPort string) string {
	if strings.HasPrefix(hostPort, "[") {
		ip, _, _ := strings.Cut(hostPort[1:], "]")
		return ip
	}
	if host, _, ok := strings.Cut(hostPort, ":"); ok && strings.Count(hostPort, ":") == 1 {
		return host
	}
	return hostPort
}

// sane reports whether the server may put host into a link: it has 1 to 255 ASCII letters, digits and characters of
// ".-_:[]". None of these ends a URL or a field of a header.
func sane(host string) bool {
	if host == "" || len(host) > 255 {
		return false
	}
	for i := range len(host) {
		c := host[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '.', c == '-', c == '_', c == ':', c == '[', c == ']':
		default:
			return false
		}
	}
	return true
}
