package auth

import "net/netip"

// Network returns what a client's address counts as: itself, or for IPv6 its /64, which is what one client is
// given (RFC 6177).
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
