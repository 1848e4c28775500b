// Package dial owns the connections to targets: which addresses may be connected to, and how. The check is
// made on the address that the system is about to connect to, after the name was looked up and with no
// second look-up behind it, so that no answer of a name server can get around it.
package dial

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrForbidden is wrapped by the fault of a connection to an address that may not be connected to.
var ErrForbidden = errors.New("the address is not a public one")

// Guard tells which addresses may be connected to: those of the Internet, and ranges that are allowed by
// name. Private, loopback, link-local, multicast, documentation and metadata addresses are not among the
// first, nor what hides them: IPv4-mapped and -compatible IPv6, NAT64, 6to4, Teredo, ISATAP.
type Guard struct {
	public  *ssrf.Guardian
	allowed []netip.Prefix
}

// NewGuard makes a Guard. An IPv4 range also allows its addresses when they come inside of IPv6 ones
// (mapped, or by NAT64 or 6to4).
func NewGuard(allowed []netip.Prefix) *Guard {
	g := &Guard{public: ssrf.New(
		ssrf.WithAnyPort(), // ports are the endpoint's matter
		ssrf.WithDeniedV4Prefixes(
			netip.MustParsePrefix("168.63.129.16/32"), // the metadata and name server of a large cloud, on a public address
		),
	)}
	for _, p := range allowed {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		g.allowed = append(g.allowed, p.Masked())
	}
	return g
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
	if inside, ok := embedded(ip); ok {
		// The address inside is where packets end, so it has to be good too.
		if err := g.Check(inside); err != nil {
			return err
		}
		if g.named(inside) {
			return nil
		}
	}
	if g.named(ip) {
		return nil
	}
	if err := g.public.SafeAddr(ip); err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	return nil
}

// named reports whether ip lies in a range that is allowed by name.
func (g *Guard) named(ip netip.Addr) bool {
	for _, p := range g.allowed {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// embedded returns the IPv4 address that an IPv6 address leads to.
func embedded(ip netip.Addr) (netip.Addr, bool) {
	if !ip.Is6() {
		return netip.Addr{}, false
	}
	b := ip.As16()
	v4 := func(at int) (netip.Addr, bool) { return netip.AddrFrom4([4]byte(b[at : at+4])), true }
	switch {
	case [12]byte(b[:12]) == [12]byte{0: 0, 1: 0x64, 2: 0xff, 3: 0x9b}: // 64:ff9b::/96, NAT64 (RFC 6052)
		return v4(12)
	case [6]byte(b[:6]) == [6]byte{0: 0, 1: 0x64, 2: 0xff, 3: 0x9b, 5: 1}: // 64:ff9b:1::/48, local NAT64 (RFC 8215)
		return v4(12)
	case b[0] == 0x20 && b[1] == 0x02: // 2002::/16, 6to4 (RFC 3056)
		return v4(2)
	case [4]byte(b[:4]) == [4]byte{0x20, 0x01}: // 2001::/32, Teredo (RFC 4380): the client's address, inverted
		for i := 12; i < 16; i++ {
			b[i] ^= 0xff
		}
		return v4(12)
	case [4]byte(b[8:12]) == [4]byte{0, 0, 0x5e, 0xfe}, [4]byte(b[8:12]) == [4]byte{2, 0, 0x5e, 0xfe}: // ISATAP (RFC 5214)
		return v4(12)
	case [12]byte(b[:12]) == [12]byte{} && b[12] != 0: // ::/96, IPv4-compatible (RFC 4291, deprecated)
		return v4(12)
	}
	return netip.Addr{}, false
}
