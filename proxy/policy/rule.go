// Package policy defines endpoints and credentials, and decides whether a request is allowed. It does no I/O: the same
// request gets the same decision from the same [Snapshot]. Other packages read endpoints and credentials. For example,
// package manifest reads a folder.
//
// Rules can only allow. The policy refuses a request that no rule allows.
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

// Rule allows the origins or destinations of a domain, or the origins or destinations that a pattern matches. The zero
// Rule allows nothing.
type Rule struct {
	domain  string // lower-case ASCII
	pattern *regexp.Regexp
	prefix  string // every match of the pattern begins with it
	suffix  string // every match of the pattern ends with it
	source  string
}

// Domain returns a Rule for a domain and all its subdomains, over https on its default port. It returns an error for an
// invalid name, an address, a single label such as "com", and a public suffix such as "co.uk" or "github.io".
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

// Pattern returns a Rule for an RE2 regular expression. The expression must match the whole text: the value of Origin,
// or the scheme://host[:port]/path of a destination. Pattern returns an error if the expression does not compile, is
// empty, or is longer than [MaxPattern].
func Pattern(expression string) (Rule, error) {
	if expression == "" || len(expression) > MaxPattern {
		return Rule{}, fmt.Errorf("a pattern has 1 to %d bytes", MaxPattern)
	}
	// Compiles the expression alone first, so that a ")" in it cannot end the group around it.
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

// String returns the kind and the text of the rule, such as "domain example.com".
func (r Rule) String() string { return r.source }

// allowsOrigin reports whether the rule allows an origin that [ValidOrigin] has accepted.
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

// literalSuffix returns a text with which every match of a pattern ends, or "" if it finds no such text.
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

// matches reports whether the rule's pattern matches the whole text. The prefix and suffix exclude most texts cheaply.
func (r Rule) matches(text string) bool {
	return strings.HasPrefix(text, r.prefix) && strings.HasSuffix(text, r.suffix) && r.pattern.MatchString(text)
}

// covers reports whether host is the rule's domain or a subdomain. The result is false for a host with a port.
func (r Rule) covers(host string) bool {
	if r.domain == "" {
		return false
	}
	under, ok := strings.CutSuffix(host, r.domain)
	return ok && (under == "" || strings.HasSuffix(under, "."))
}

// ValidOrigin reports whether value is an origin as browsers write it (RFC 6454, section 6.2). An origin is a scheme
// and a host in lower case, and a port unless the port is the scheme's default. The value "null" is not valid, because
// any page can make a browser send it. A host with a trailing dot is not valid either.
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

// validPort reports whether an origin of the scheme may end in ":" and port. The default ports of https and http are
// not allowed, because browsers leave them out.
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
