package httpserver

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/lectern-dev/lectern/shared/trustedkeys"
)

// origin finds out the client's address and the URL that it used. It believes the forwarding headers of trusted proxies
// and of the edge alone.
type origin struct {
	publicURL string // without a slash at its end; empty to take the request's
	trusted   []netip.Prefix
	edge      *trustedkeys.Set
}

// believes reports whether the forwarding headers of r are believed. fromEdge reports that r had a key of the edge.
func (o *origin) believes(r *http.Request, fromEdge bool) bool {
	return fromEdge || len(o.trusted) > 0 && o.trusts(peerAddress(r.RemoteAddr))
}

// trusts reports whether address is a trusted proxy's.
func (o *origin) trusts(address string) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	ip = ip.Unmap().WithZone("")
	for _, prefix := range o.trusted {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}

// clientAddress returns the client's IP address. If the peer is the edge or a trusted proxy, that is the last address in
// X-Forwarded-For that is no trusted proxy. A client can forge the addresses before it. Otherwise it is the peer's.
func (o *origin) clientAddress(r *http.Request, fromEdge bool) string {
	client := peerAddress(r.RemoteAddr)
	if !o.believes(r, fromEdge) {
		return client
	}
	lines := r.Header["X-Forwarded-For"]
	for i := len(lines) - 1; i >= 0; i-- {
		hops := strings.Split(lines[i], ",")
		for j := len(hops) - 1; j >= 0; j-- {
			hop := peerAddress(strings.TrimSpace(hops[j]))
			ip, err := netip.ParseAddr(hop)
			if err != nil {
				return client
			}
			if client = ip.Unmap().String(); !o.trusts(client) {
				return client
			}
		}
	}
	return client
}

// baseURL returns the scheme and host that the client used, or PUBLIC_URL. It is empty when the client
// named no host that is valid in a URL.
func (o *origin) baseURL(r *http.Request, fromEdge bool) string {
	if o.publicURL != "" {
		return o.publicURL
	}
	scheme, host := "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	if o.believes(r, fromEdge) {
		if hosts := r.Header["X-Forwarded-Host"]; fromEdge && len(hosts) == 1 && hosts[0] == "" {
			return "" // the client named no host; r.Host is the address at which the edge reaches this service
		}
		proto, forwarded := forwardedFrom(r.Header)
		if proto == "http" || proto == "https" {
			scheme = proto
		}
		if sane(forwarded) {
			host = forwarded
		}
	}
	if !sane(host) {
		return ""
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
