package egress_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/proxy/egress"
)

func TestGuardRefuses(t *testing.T) {
	g := egress.NewGuard(nil, nil, nil)
	for _, address := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "169.254.170.2",
		"172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
		"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16", "100.100.100.200",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:168.63.129.16", "::127.0.0.1", "::169.254.169.254",
		"64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::8.8.8.8", "64:ff9b:1::a00:1", "64:ff9b:1::808:808",
		"2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:808:808::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
		"2a00:1450::5efe:7f00:1", "2a00:1450::200:5efe:a00:1",
		"fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "ff0e::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1", "fe80::1%eth0",
	} {
		if err := g.Check(netip.MustParseAddr(address)); !errors.Is(err, egress.ErrForbidden) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"1.1.1.1", "8.8.8.8", "169.253.0.1", "172.32.0.1", "168.63.129.15", "2606:4700:4700::1111", "::ffff:8.8.8.8"} {
		if err := g.Check(netip.MustParseAddr(address)); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestGuardByName(t *testing.T) {
	for _, tt := range []struct {
		name            string
		allowed, denied string // separated by commas
		in              string
		want            bool
	}{
		{"the range", "10.1.0.0/16", "", "10.1.2.3", true},
		{"next to the range", "10.1.0.0/16", "", "10.2.0.1", false},
		{"mapped", "10.1.0.0/16", "", "::ffff:10.1.2.3", true},
		{"a mapped range", "::ffff:10.1.0.0/112", "", "10.1.2.3", true},
		{"by NAT64", "10.1.0.0/16", "", "64:ff9b::a01:203", true},
		{"NAT64 to the Internet", "64:ff9b::/96", "", "64:ff9b::808:808", true},
		{"NAT64 to metadata", "64:ff9b::/96", "", "64:ff9b::a9fe:a9fe", false},
		{"NAT64 to loopback", "64:ff9b::/96", "", "64:ff9b::7f00:1", false},
		{"loopback", "127.0.0.0/8", "", "127.0.0.1", true},
		{"loopback of IPv6 is another range", "127.0.0.0/8", "", "::1", false},
		{"metadata by name", "168.63.129.16/32", "", "168.63.129.16", true},
		{"not masked", "10.1.2.3/16", "", "10.1.9.9", true},

		// An allowed IPv4 range does not allow an IPv6 address that only embeds an address of the range.
		{"ISATAP in a private network", "10.1.0.0/16", "", "fd00::5efe:a01:203", false},
		{"ISATAP on link-local", "10.1.0.0/16", "", "fe80::200:5efe:a01:203", false},
		{"Teredo", "10.1.0.0/16", "", "2001:0:4136:e378:8000:63bf:f5fe:fdfc", false},
		{"6to4", "10.1.0.0/16", "", "2002:a01:203::1", false},
		{"compatible", "10.1.0.0/16", "", "::10.1.2.3", false},
		{"local NAT64", "10.1.0.0/16", "", "64:ff9b:1::a01:203", false},
		{"local NAT64, allowed", "10.1.0.0/16,64:ff9b:1::/48", "", "64:ff9b:1::a01:203", true},
		{"local NAT64 to the Internet", "64:ff9b:1::/48", "", "64:ff9b:1::808:808", true},
		{"local NAT64 of /48 to the Internet", "64:ff9b:1::/48", "", "64:ff9b:1:808:8:800::", true},
		{"local NAT64 to metadata", "64:ff9b:1::/48", "", "64:ff9b:1::a9fe:a9fe", false},
		{"local NAT64 of /48 to metadata", "10.1.0.0/16,64:ff9b:1::/48", "", "64:ff9b:1:a9fe:a9:fe00:a01:203", false},
		{"local NAT64 of /64 to metadata", "10.1.0.0/16,64:ff9b:1::/48", "", "64:ff9b:1:0:a9:fea9:fe00:0", false},
		{"ISATAP, allowed", "10.1.0.0/16,fd00::/8", "", "fd00::5efe:a01:203", true},
		{"ISATAP to metadata, allowed", "fd00::/8", "", "fd00::5efe:a9fe:a9fe", false},

		{"denied", "", "34.118.224.0/20", "34.118.225.1", false},
		{"beside the denied", "", "34.118.224.0/20", "34.118.240.1", true},
		{"denied, mapped", "", "34.118.224.0/20", "::ffff:34.118.225.1", false},
		{"a mapped range denied", "", "::ffff:34.118.224.0/116", "34.118.225.1", false},
		{"denied, by NAT64", "64:ff9b::/96", "34.118.224.0/20", "64:ff9b::2276:e101", false},
		{"denied, IPv6", "", "2600:1900::/28", "2600:1901::1", false},
		{"denied and allowed", "34.118.0.0/16", "34.118.224.0/20", "34.118.225.1", false},
		{"denied within the allowed", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", false},
		{"allowed beside the denied", "10.0.0.0/8", "10.1.0.0/16", "10.2.0.1", true},
	} {
		if err := egress.NewGuard(prefixes(tt.allowed), prefixes(tt.denied), nil).Check(netip.MustParseAddr(tt.in)); (err == nil) != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestGuardOfOwnNAT64(t *testing.T) {
	own := prefixes("2a00:1450:64::/96,2a00:32::/32,2a00:40:100::/40,2a00:48:1::/48,2a00:56:1:100::/56,2a00:64:1:1::/64")
	for _, p := range own {
		if !egress.ValidNAT64(p) {
			t.Errorf("%s is not valid", p)
		}
	}
	for _, p := range prefixes("10.0.0.0/8,2a00:1450:64::/95,2a00:1450:64::1/96,::ffff:10.0.0.0/104") {
		if egress.ValidNAT64(p) {
			t.Errorf("%s is valid", p)
		}
	}
	g := egress.NewGuard(nil, nil, own)
	for address, want := range map[string]bool{
		"2a00:1450:64::a9fe:a9fe": false, "2a00:1450:64::808:808": true, "2a00:1450:65::a9fe:a9fe": true,
		"2a00:32:a9fe:a9fe::": false, "2a00:32:808:808::": true, "2a00:40:1a9:fea9:fe::": false, "2a00:48:1:a9fe:a9:fe00::": false,
		"2a00:56:1:1a9:fe:a9fe::": false, "2a00:64:1:1:a9:fea9:fe00:0": false, "2a00:64:1:1:8:808:800:0": true,
	} {
		if err := g.Check(netip.MustParseAddr(address)); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func prefixes(list string) (of []netip.Prefix) {
	for text := range strings.SplitSeq(list, ",") {
		if text != "" {
			of = append(of, netip.MustParsePrefix(text))
		}
	}
	return of
}

func TestControlRefusesOtherNetworks(t *testing.T) {
	g := egress.NewGuard(nil, nil, nil)
	for _, tt := range [][2]string{{"udp4", "8.8.8.8:443"}, {"unix", "/run/x.sock"}, {"tcp4", "nonsense"}} {
		if err := g.Control(context.Background(), tt[0], tt[1], nil); !errors.Is(err, egress.ErrForbidden) {
			t.Errorf("%v: %v", tt, err)
		}
	}
}
