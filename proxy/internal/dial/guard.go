// Package dial owns the connections to targets: which addresses may be connected to, and how. The check is
// made on the address that the system is about to connect to, after the name was looked up and with no
// second look-up behind it, so that no answer of a name server can get around it.
package dial

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrForbidden is wrapped by the fault of a connection to an address that may not be connected to.
var ErrForbidden = errors.New("the address is not a public one")

// Guard tells which addresses may be connected to: those of the Internet, and ranges that are allowed by
// name. Private, loopback, link-local, multicast, documentation and metadata addresses are not among the
// first, nor what hides them: IPv4-mapped and -compatible IPv6, NAT64, 6to4, Teredo, ISATAP. Ranges that are denied by
// name may not be connected to in any case.
type Guard struct {
	public          *ssrf.Guardian
	allowed, denied []netip.Prefix
}

// NewGuard makes a Guard. Denied ranges win over allowed ones. An IPv4 range also stands for its addresses in their
// IPv4-mapped form and in that of NAT64 (64:ff9b::/96). In other IPv6 forms, the IPv6 address has to be a public or an
// allowed one itself.
func NewGuard(allowed, denied []netip.Prefix) *Guard {
	return &Guard{
		public: ssrf.New(
			ssrf.WithAnyPort(), // ports are the endpoint's matter
			ssrf.WithDeniedV4Prefixes(
				netip.MustParsePrefix("168.63.129.16/32"), // the metadata and name server of a large cloud, on a public address
			),
		),
		allowed: normal(allowed), denied: normal(denied),
	}
}

// normal returns prefixes without mapped ones, and masked.
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

// Control is a net.Dialer's ControlContext.
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

// Check returns nil when the address may be connected to, and otherwise an error that wraps [ErrForbidden].
func (g *Guard) Check(ip netip.Addr) error {
	if ip.Zone() != "" {
		return fmt.Errorf("%w: it has a zone", ErrForbidden)
	}
	ip = ip.Unmap()
	if isIn(g.denied, ip) {
		return fmt.Errorf("%w: it is denied by name", ErrForbidden)
	}
	for _, inside := range embedded(ip) {
		// The address inside is where packets end, so it has to be good too.
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

// embedded returns the IPv4 addresses that an IPv6 address may lead to.
func embedded(ip netip.Addr) []netip.Addr {
	if !ip.Is6() {
		return nil
	}
	b := ip.As16()
	v4 := func(at ...int) netip.Addr { return netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]}) }
	last := v4(12, 13, 14, 15)
	switch {
	case nat64.Contains(ip):
		return []netip.Addr{last}
	case localNAT64.Contains(ip):
		// The network chooses the prefix's length, and with it where the address stands (RFC 6052, section 2.2).
		inside := []netip.Addr{last}
		for _, other := range []netip.Addr{v4(6, 7, 9, 10), v4(7, 9, 10, 11), v4(9, 10, 11, 12)} {
			if other.As4()[0] != 0 { // else the prefix is a longer one: 0.0.0.0/8 is nobody's
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
