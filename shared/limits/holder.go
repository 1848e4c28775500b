package limits

import "net/netip"

// NetworkOf returns the network of a client's address, for bounds and rates: an IPv4 address itself, or the /64 of an
// IPv6 address. One IPv6 client usually has a whole /64 (RFC 6177). A text that is no address is returned unchanged.
func NetworkOf(address string) string {
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
