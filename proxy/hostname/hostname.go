// Package hostname defines the canonical spelling of a host. The proxy compares rules and targets in this spelling, so
// different spellings of one host cannot lead to different decisions.
package hostname

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// The errors of [Normal]. Each text continues a sentence whose subject is the URL. The text contains no part of the
// URL, so callers of the proxy may see the text.
var (
	ErrInvalid = errors.New("has a host that is no name and no address")
	ErrMissing = errors.New("has no host")
	ErrZone    = errors.New("has an IPv6 zone")
	ErrIPv4    = errors.New("has an IP address in an unusual form")
)

// Normal returns the canonical spelling of a host, or the error [ErrInvalid], [ErrMissing], [ErrZone] or [ErrIPv4].
// The canonical spelling is:
//
//   - an IPv4 address in four decimal numbers
//   - an IPv6 address, which must be in brackets: without brackets, in the form of RFC 5952
//   - a name in lower-case ASCII, without a trailing dot; UTS #46 maps and checks a name with other characters or xn--
func Normal(host string) (string, error) {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		inside, closed := strings.CutSuffix(inside, "]")
		ip, err := netip.ParseAddr(inside)
		switch {
		case err != nil || !closed || !ip.Is6():
			return "", ErrInvalid
		case ip.Zone() != "":
			return "", ErrZone
		}
		return ip.String(), nil
	}
	if host == "" {
		return "", ErrMissing
	}
	for i := range len(host) {
		c := host[i]
		if c < utf8.RuneSelf && !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_') {
			return "", ErrInvalid
		}
	}
	name := strings.ToLower(host)
	if !isPlainName(name) {
		profile := idna.New(idna.MapForLookup(), idna.BidiRule(), idna.CheckJoiners(true), idna.StrictDomainName(true), idna.Transitional(false))
		var err error
		if name, err = profile.ToASCII(host); err != nil {
			return "", ErrInvalid
		}
		name = strings.ToLower(name)
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > 253 {
		return "", ErrInvalid
	}
	last := name
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return "", ErrInvalid
		}
		last = label
	}
	if isNumber(last) {
		ip, err := netip.ParseAddr(name)
		if err != nil || !ip.Is4() {
			return "", ErrIPv4
		}
		return ip.String(), nil
	}
	return name, nil
}

// isPlainName reports whether a lower-case name contains nothing that IDNA would map or check.
func isPlainName(name string) bool {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return !strings.HasPrefix(name, "xn--") && !strings.Contains(name, ".xn--")
}

// isNumber reports whether a URL parser reads a host that ends in label as an IPv4 address (WHATWG URL, "ends in a
// number").
func isNumber(label string) bool {
	if strings.HasPrefix(label, "0x") {
		_, err := strconv.ParseUint(label[2:], 16, 64)
		return label == "0x" || err == nil || errors.Is(err, strconv.ErrRange)
	}
	for i := range len(label) {
		if label[i] < '0' || label[i] > '9' {
			return false
		}
	}
	return true
}
