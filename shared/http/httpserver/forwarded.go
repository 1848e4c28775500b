package httpserver

import (
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/shared/auth/trustedkeys"
)

// origin finds out the client's address and the URL that it used. It believes the forwarding headers of trusted proxies
// and of the edge alone, and a forwarded https of any client.
type origin struct {
	publicURL string // without a slash at its end; empty to take the request's
	trusted   Proxies
	edge      *trustedkeys.Set
	inside    bool // clients are within the platform, and each is its own peer

	// unnamed is called for each request whose peer forwards https and no host that is believed. A proxy in front may have
	// replaced the request's own.
	unnamed func(r *http.Request)
}

// believes reports whether all forwarding headers of r are believed. fromEdge reports that r had a key of the edge.
func (o *origin) believes(r *http.Request, fromEdge bool) bool {
	return fromEdge || len(o.trusted.CIDRs) > 0 && o.trusted.trust(parseAddress(r.RemoteAddr))
}

// client returns the client's IP address, and whether that is known to be one client's.
//
// Behind the edge or a trusted proxy, the address is the last in X-Forwarded-For that is no trusted proxy's. A client can
// forge the addresses before it. With private, and a peer in a private network, it is the last public one. Otherwise it is
// the peer's, which may be that of a proxy for all clients.
//
// A service behind the edge leaves the shares of networks to the edge.
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

// hopsOf returns the addresses in X-Forwarded-For, the last first. A text that is no address is a hop that is not valid.
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

// baseURL returns PUBLIC_URL. If that is not set, it returns the scheme and host that the client used.
func (o *origin) baseURL(r *http.Request, fromEdge bool) string {
	if o.publicURL != "" {
		return o.publicURL
	}
	return o.requestURL(r, fromEdge)
}

// requestURL returns the scheme and host that the client used, or PUBLIC_URL if PUBLIC_URL has the same host. The result is
// empty when the client named no host that is valid in a URL. The scheme is https if anybody forwards https, or if PUBLIC_URL
// begins with https: that can only raise the scheme. With a link of http, a client would send its key in clear text.
func (o *origin) requestURL(r *http.Request, fromEdge bool) string {
	scheme, host := "http", r.Host
	proto, forwarded := forwardedFrom(r.Header)
	publicScheme, public, _ := strings.Cut(o.publicURL, "://")
	if r.TLS != nil || proto == "https" || publicScheme == "https" {
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
	case proto == "https" && o.publicURL == "":
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

// forwardedFrom reads what the nearest proxy says of the request that it took. It reads Forwarded (RFC 7239) only if
// there are no X-Forwarded headers: a proxy that writes those may pass a client's Forwarded on. Of several values the
// last is the nearest proxy's own.
func forwardedFrom(h http.Header) (proto, host string) {
	if h["X-Forwarded-For"] != nil || h["X-Forwarded-Proto"] != nil || h["X-Forwarded-Host"] != nil {
		return strings.ToLower(lastOf(h["X-Forwarded-Proto"])), lastOf(h["X-Forwarded-Host"])
	}
	for pair := range strings.SplitSeq(lastOf(h["Forwarded"]), ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "proto":
			proto = strings.ToLower(value)
		case "host":
			host = value
		}
	}
	return proto, host
}

// lastOf returns the last of a header's comma-separated values.
func lastOf(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	line := lines[len(lines)-1]
	return strings.TrimSpace(line[strings.LastIndexByte(line, ',')+1:])
}

// peerAddress returns the IP of "ip:port", "[ip]:port", "[ip]" or "ip".
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

// sane reports whether host is valid in a URL for others: a name or an IP with an optional port. Characters that end a
// URL or a header's field are not allowed.
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
