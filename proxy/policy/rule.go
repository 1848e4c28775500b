// Package policy owns endpoints, credentials and the decision about a request. It
// is pure: it looks nothing up, and the same request gets the same decision from the same [Snapshot]. Other packages
// read endpoints and credentials, such as package manifest from a folder.
//
// Rules allow. A request that no rule allows is refused.
package policy

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/lectern-dev/lectern/proxy/hostname"
)

// MaxPattern is the longest pattern, in bytes.
const MaxPattern = 1024

// Rule allows origins or destinations: those of a domain, or those that a pattern matches. The zero Rule
// allows none.
type Rule struct {
	domain  string // lower-case ASCII
	pattern *regexp.Regexp
	prefix  string // every text that the pattern matches begins with it,
	suffix  string // and ends with this
	source  string
}

// Domain makes a Rule of a domain: it and all its subdomains, over https on its default port. A domain
// under which anybody can have names ("com", "co.uk", "github.io") is refused, as is an address.
func Domain(name string) (Rule, error) {
	domain, err := hostname.Normal(strings.TrimSuffix(name, "."))
	switch {
	case err != nil || strings.ContainsAny(domain, ":"):
		return Rule{}, fmt.Errorf("%q is not a domain", name)
	case isAddress(domain):
		return Rule{}, fmt.Errorf("%q is an address; use a pattern", name)
	}
	if suffix, _ := publicsuffix.PublicSuffix(domain); suffix == domain {
		return Rule{}, fmt.Errorf("%q would allow every domain under it; name one of them, or use a pattern", name)
	}
	return Rule{domain: domain, source: "domain " + domain}, nil
}

// Pattern makes a Rule of an RE2 regular expression, which has to match the whole: the Origin's value, or a
// destination's scheme://host[:port]/path.
func Pattern(expression string) (Rule, error) {
	if expression == "" || len(expression) > MaxPattern {
		return Rule{}, fmt.Errorf("a pattern has 1 to %d bytes", MaxPattern)
	}
	// Compiled alone first, so that no ")" in it can end the group around it.
	alone, err := regexp.Compile(expression)
	if err != nil {
		return Rule{}, fmt.Errorf("the pattern does not compile: %w", err)
	}
	prefix, _ := alone.LiteralPrefix()
	re, err := regexp.Compile(`\A(?:` + expression + `)\z`)
	if err != nil {
		return Rule{}, fmt.Errorf("the pattern does not compile: %w", err)
	}
	return Rule{pattern: re, prefix: prefix, suffix: literalSuffix(expression), source: "pattern " + expression}, nil
}

// String names the rule as it was written.
func (r Rule) String() string { return r.source }

// allowsOrigin reports whether the rule allows an Origin's value that [ValidOrigin] has accepted.
func (r Rule) allowsOrigin(origin string) bool {
	if r.pattern != nil {
		return r.matches(origin)
	}
	host, ok := strings.CutPrefix(origin, "https://")
	return ok && r.covers(host)
}

// allowsURL reports whether the rule allows a normalised scheme://host[:port]/path.
func (r Rule) allowsURL(url string) bool {
	if r.pattern != nil {
		return r.matches(url)
	}
	rest, ok := strings.CutPrefix(url, "https://")
	if !ok {
		return false
	}
	host, _, _ := strings.Cut(rest, "/")
	return r.covers(host)
}

// literalSuffix returns text that every whole match of a pattern ends with, "" when it finds none.
func literalSuffix(expression string) string {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return ""
	}
	if parsed = parsed.Simplify(); parsed.Op == syntax.OpConcat {
		parsed = parsed.Sub[len(parsed.Sub)-1]
	}
	if parsed.Op != syntax.OpLiteral || parsed.Flags&syntax.FoldCase != 0 {
		return ""
	}
	return string(parsed.Rune)
}

// matches reports whether the rule's pattern matches all of text. Most texts are ruled out by how they begin or end.
func (r Rule) matches(text string) bool {
	return strings.HasPrefix(text, r.prefix) && strings.HasSuffix(text, r.suffix) && r.pattern.MatchString(text)
}

// covers reports whether host is the domain or under it. A host with a port is neither.
func (r Rule) covers(host string) bool {
	if r.domain == "" {
		return false
	}
	under, ok := strings.CutSuffix(host, r.domain)
	return ok && (under == "" || strings.HasSuffix(under, "."))
}

// ValidOrigin reports whether value is an origin as browsers write it (RFC 6454, section 6.2): a scheme, a host
// and a port that is not the scheme's own, nothing else, no capitals. "null" is none: any page can make a browser
// send it. A host with a trailing dot is refused, too.
func ValidOrigin(value string) bool {
	scheme, host, ok := strings.Cut(value, "://")
	if !ok || scheme == "" || len(value) > 512 {
		return false
	}
	for i := range len(scheme) {
		c := scheme[i]
		if !('a' <= c && c <= 'z' || i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.')) {
			return false
		}
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		if !validPort(scheme, host[i+1:]) {
			return false
		}
		host = host[:i]
	}
	normal, err := hostname.Normal(host)
	if strings.HasPrefix(host, "[") {
		normal = "[" + normal + "]"
	}
	return err == nil && normal == host
}

// validPort reports whether an origin of the scheme may end in ":" and port.
func validPort(scheme, port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return false
	}
	return !(scheme == "https" && n == 443 || scheme == "http" && n == 80)
}

func isAddress(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last != "" && strings.Trim(last, "0123456789") == ""
}
