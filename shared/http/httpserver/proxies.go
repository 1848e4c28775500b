package httpserver

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the trusted proxies of a server: the value of TRUSTED_PROXIES.
type Proxies struct {
	// Private says that the server believes a peer in a private network about the client's address, but not about the
	// host.
	Private bool
	// CIDRs are the networks of proxies whose forwarding headers are all believed.
	CIDRs []netip.Prefix
}

// UnmarshalText reads comma-separated CIDRs, or the word private. An empty text trusts no proxy. The error reports a
// text that is neither, or both together.
func (p *Proxies) UnmarshalText(text []byte) error {
	*p = Proxies{}
	for part := range strings.SplitSeq(string(text), ",") {
		switch part = strings.TrimSpace(part); part {
		case "":
		case "private":
			p.Private = true
		default:
			prefix, err := netip.ParsePrefix(part)
			if err != nil {
				return fmt.Errorf("private, or CIDRs such as 10.0.0.0/8: %w", err)
			}
			p.CIDRs = append(p.CIDRs, prefix)
		}
	}
	if p.Private && len(p.CIDRs) > 0 {
		return errors.New("private, or CIDRs such as 10.0.0.0/8, and not both")
	}
	return nil
}

// some reports whether TRUSTED_PROXIES names any proxies, as CIDRs or as private.
func (p Proxies) some() bool { return p.Private || len(p.CIDRs) > 0 }

// trust reports whether ip is in CIDRs: the server believes all forwarding headers of that proxy.
func (p Proxies) trust(ip netip.Addr) bool { return within(p.CIDRs, ip) }

// privateNetworks are the networks of RFC 1918, the shared addresses of RFC 6598, and the unique local addresses of RFC
// 4193. Pods and nodes of a cluster usually have addresses in these networks.
var privateNetworks = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fc00::/7"),
}

func isPrivate(ip netip.Addr) bool { return within(privateNetworks, ip) }

// isPublic reports whether ip may be the address of a client on the internet.
func isPublic(ip netip.Addr) bool { return ip.IsGlobalUnicast() && !isPrivate(ip) }

func within(networks []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(ip) })
}

// parseAddress returns the IP address in text, which is from a peer or a forwarding header and may have a port. The
// result has no zone, and is the invalid Addr if text has no address.
func parseAddress(text string) netip.Addr {
	ip, err := netip.ParseAddr(peerAddress(text))
	if err != nil {
		return netip.Addr{}
	}
	return ip.Unmap().WithZone("")
}
