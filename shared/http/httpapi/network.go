package httpapi

import "net/netip"

// Network returns the network that a client's address counts as: the address itself, or for IPv6 its /64. One IPv6
// client usually has a whole /64 (RFC 6177).
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}
