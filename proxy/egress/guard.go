// Package egress decides which addresses connections to third parties may reach. A tenant chooses the third party, so
// the address may be one of the cluster's own. The guard checks the resolved address directly before the connection. No
// further lookup follows, so no DNS answer can bypass the check.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"

	"github.com/lectern-dev/lectern/proxy/hostname"
)

// ErrForbidden is the error of a connection to an address that a Guard forbids. [Guard.Check] and [Guard.Control] wrap
// ErrForbidden.
var ErrForbidden = errors.New("the address is not a public one")

// Guard decides which addresses a process may connect to: public addresses, and ranges that the operator allows.
// Private, loopback, link-local, multicast, documentation and metadata addresses are not public. A Guard also forbids
// an IPv6 address that embeds a forbidden IPv4 address: IPv4-mapped, IPv4-compatible, NAT64, 6to4, Teredo or ISATAP.
// Ranges that the operator denies are always forbidden.
type Guard struct {
	public          *ssrf.Guardian
	allowed, denied []netip.Prefix
	nat64           []netip.Prefix // the network's own
}

// ValidNAT64 reports whether p can be a prefix for NAT64 (RFC 6052, section 2.2). Such a prefix is a masked IPv6 prefix
// of 32, 40, 48, 56, 64 or 96 bits.
func ValidNAT64(p netip.Prefix) bool {
	return p.Addr().Is6() && !p.Addr().Is4In6() && p == p.Masked() && slices.Contains([]int{32, 40, 48, 56, 64, 96}, p.Bits())
}

// NewGuard returns a Guard. Denied ranges override allowed ranges. nat64 are the NAT64 prefixes of the operator's own
// network, which [ValidNAT64] must accept. A packet to an address in such a prefix arrives at the IPv4 address that the
// address embeds. An allowed or denied IPv4 range also covers the IPv4-mapped and the NAT64 (64:ff9b::/96) form of its
// addresses. In other embeddings, the IPv6 address itself must be public or allowed too.
func NewGuard(allowed, denied, nat64 []netip.Prefix) *Guard {
	return &Guard{
		public: ssrf.New(
			ssrf.WithAnyPort(), // the endpoint restricts ports
			ssrf.WithDeniedV4Prefixes(
				netip.MustParsePrefix("168.63.129.16/32"), // Azure's metadata and DNS server, which has a public address
			),
		),
		allowed: normal(allowed), denied: normal(denied), nat64: nat64,
	}
}

// normal returns prefixes without the bits after their length. IPv4-mapped IPv6 prefixes of at least 96 bits become
// IPv4 prefixes.
func normal(prefixes []netip.Prefix) []netip.Prefix {
	var to []netip.Prefix
	for _, p := range prefixes {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		to = append(to, p.Masked())
	}
	return to
}

// Control checks the address that a net.Dialer is about to connect to, and refuses every network except TCP. The Dialer
// calls Control as its ControlContext, and an error prevents the connection.
func (g *Guard) Control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: %s", ErrForbidden, network)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	return g.Check(to.Addr())
}

// Check returns nil for an allowed address, and otherwise an error that wraps [ErrForbidden].
func (g *Guard) Check(ip netip.Addr) error {
	if ip.Zone() != "" {
		return fmt.Errorf("%w: it has a zone", ErrForbidden)
	}
	ip = ip.Unmap()
	if isIn(g.denied, ip) {
		return fmt.Errorf("%w: it is in a denied range", ErrForbidden)
	}
	for _, inside := range g.embedded(ip) {
		// Packets arrive at the embedded address, so it must be allowed too.
		if err := g.Check(inside); err != nil {
			return err
		}
		if nat64.Contains(ip) && isIn(g.allowed, inside) {
			return nil
		}
	}
	if isIn(g.allowed, ip) {
		return nil
	}
	if err := g.public.SafeAddr(ip); err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	return nil
}

// private are the last labels of names that public DNS does not have, such as metadata.google.internal.
var private = []string{"localhost", "local", "internal", "svc"}

// CheckName judges the host of a URL that a proxy resolves, whose address nobody here sees. CheckName judges an address as
// [Guard.Check] does, in any spelling that net/http sends as the address. It refuses names that are not public: localhost,
// names without a dot, those of networks and clusters (local, internal, svc), and what [hostname.Normal] refuses.
func (g *Guard) CheckName(host string) error {
	if strings.Contains(host, ":") {
		host = "[" + host + "]" // an IPv6 address, as url.URL.Hostname returns it
	}
	name, err := hostname.Normal(host)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		return g.Check(ip)
	}
	if last := name[strings.LastIndexByte(name, '.')+1:]; last == name || slices.Contains(private, last) {
		return fmt.Errorf("%w: the name is not public", ErrForbidden)
	}
	return nil
}

func isIn(ranges []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(ip) })
}

var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")   // RFC 6052
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215
	sixToFour  = netip.MustParsePrefix("2002::/16")      // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32")      // RFC 4380
	compatible = netip.MustParsePrefix("::/96")          // RFC 4291, deprecated
)

// embedded returns the IPv4 addresses at which packets to an IPv6 address may arrive, nil for none.
func (g *Guard) embedded(ip netip.Addr) []netip.Addr {
	if !ip.Is6() {
		return nil
	}
	b := ip.As16()
	v4 := func(at ...int) netip.Addr { return netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]}) }
	for _, p := range g.nat64 {
		if p.Contains(ip) {
			var inside []int
			for at := p.Bits() / 8; len(inside) < 4; at++ {
				if at != 8 { // bits 64 to 71 are none of the address (RFC 6052, section 2.2)
					inside = append(inside, at)
				}
			}
			return []netip.Addr{v4(inside...)}
		}
	}
	last := v4(12, 13, 14, 15)
	switch {
	case nat64.Contains(ip):
		return []netip.Addr{last}
	case localNAT64.Contains(ip):
		// The network chooses the prefix length, which determines the position of the address (RFC 6052, section 2.2).
		inside := []netip.Addr{last}
		for _, other := range []netip.Addr{v4(6, 7, 9, 10), v4(7, 9, 10, 11), v4(9, 10, 11, 12)} {
			if other.As4()[0] != 0 { // otherwise the prefix is longer: no host has an address in 0.0.0.0/8
				inside = append(inside, other)
			}
		}
		if len(inside) > 1 && last.As4()[0] == 0 {
			inside = inside[1:]
		}
		return inside
	case sixToFour.Contains(ip):
		return []netip.Addr{v4(2, 3, 4, 5)}
	case teredo.Contains(ip): // the client's address, inverted
		for i := 12; i < 16; i++ {
			b[i] ^= 0xff
		}
		return []netip.Addr{v4(12, 13, 14, 15)}
	case [4]byte(b[8:12]) == [4]byte{0, 0, 0x5e, 0xfe}, [4]byte(b[8:12]) == [4]byte{2, 0, 0x5e, 0xfe}: // ISATAP (RFC 5214)
		return []netip.Addr{last}
	case compatible.Contains(ip) && b[12] != 0:
		return []netip.Addr{last}
	}
	return nil
}
