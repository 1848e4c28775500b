package egress

import (
	"errors"
	"net/netip"

	"github.com/lectern-dev/lectern/shared/config"
)

// Config has the settings of a [Guard].
type Config struct {
	// Address ranges, as CIDRs, that connections to third parties may reach in addition to public addresses. Not set: none.
	AllowedRanges []netip.Prefix `env:"PROXY_ALLOWED_RANGES"`

	// Address ranges, as CIDRs, that connections to third parties must not reach, even if they are public or allowed. Name
	// networks of pods or nodes with public addresses. Not set: none.
	DeniedRanges []netip.Prefix `env:"PROXY_DENIED_RANGES"`

	// The prefixes of the network's own NAT64, as CIDRs of /32, /40, /48, /56, /64 or /96. An address in them counts as the IPv4
	// address that it embeds. 64:ff9b::/96 and 64:ff9b:1::/48 are known. Not set: no others.
	NAT64Prefixes []netip.Prefix `env:"PROXY_NAT64_PREFIXES"`
}

// Validate returns an error that lists the NAT64 prefixes that are not allowed, or nil.
func (c Config) Validate() error {
	var faults []error
	for _, p := range c.NAT64Prefixes {
		if !ValidNAT64(p) {
			faults = append(faults, config.Invalid("PROXY_NAT64_PREFIXES", p, "IPv6 prefixes of 32, 40, 48, 56, 64 or 96 bits, such as 2001:db8:64::/96"))
		}
	}
	return errors.Join(faults...)
}

// Guard returns a guard with these settings, which [Config.Validate] must have accepted.
func (c Config) Guard() *Guard { return NewGuard(c.AllowedRanges, c.DeniedRanges, c.NAT64Prefixes) }
