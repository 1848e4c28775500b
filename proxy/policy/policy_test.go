package policy_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/proxy/secret"
)

func domain(t *testing.T, name string) policy.Rule {
	t.Helper()
	r, err := policy.Domain(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func pattern(t *testing.T, expression string) policy.Rule {
	t.Helper()
	r, err := policy.Pattern(expression)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRulesThatAreRefused(t *testing.T) {
	for _, name := range []string{"", ".", "com", "co.uk", "github.io", "localhost", "example..com", "https://example.com", "example.com/x", "example.com:443", "*.example.com", "127.0.0.1", "1.2.3", "[::1]", "exam ple.com", "a@b.com"} {
		if _, err := policy.Domain(name); err == nil {
			t.Errorf("the domain %q was taken", name)
		}
	}
	for _, expression := range []string{"", "(", "a)|(b", "x)", `\Q`, "(?P<", "a{1001}", strings.Repeat("a", policy.MaxPattern+1), `(?=x)`, `\1`} {
		if _, err := policy.Pattern(expression); err == nil {
			t.Errorf("the pattern %q was taken", expression)
		}
	}
}

func TestPatternsMatchWhole(t *testing.T) {
	for _, tt := range []struct {
		expression, url string
		want            bool
	}{
		{`https://a\.example/x`, "https://a.example/x", true},
		{`https://a\.example/x`, "https://a.example/xy", false},
		{`https://a\.example/x|https://b\.example/`, "https://b.example/", true},
		{`https://a\.example/x|https://b\.example/`, "https://b.example/evil", false},
		{`https://a\.example/x|.`, "https://evil.tld/https://a.example/x", false},
		{`(?i)https://A\.example/`, "https://a.example/", true},
		{`^https://a\.example/$`, "https://a.example/", true},
		{`(?m)^https://a\.example/$`, "https://a.example/\nx", false},
		{`\Qhttps://a.example/\E`, "https://a.example/", true},
		{`https://(a|b)\.example/x`, "https://b.example/x", true},
		{`https://(a|b)\.example/(?i:x)`, "https://b.example/X", true},
		{`https://a\.example/x?`, "https://a.example/", true},
		{`https://a\.example/(x|xy)`, "https://a.example/xy", true},
		{`https://a\.example/(?:x|)`, "https://a.example/", true},
		{`https://a\.example/x$`, "https://a.example/x", true},
	} {
		e := policy.Endpoint{Destinations: []policy.Rule{pattern(t, tt.expression)}}
		if got := e.AllowsURL(tt.url); got != tt.want {
			t.Errorf("%s on %q: %v", tt.expression, tt.url, got)
		}
	}
}

// TestAllowsAnyHost checks which rules match URLs of hosts that they do not name.
func TestAllowsAnyHost(t *testing.T) {
	for _, tt := range []struct {
		expression string
		want       bool
	}{
		{`https://.*`, true},
		{`.*`, true},
		{`https://[^/]+/.*`, true},
		{`https?://[^/]*/v1/.*`, true},
		{`https://[a-z0-9.-]+(:[0-9]+)?/`, true},
		{`https://[^/]+:8443/x`, true},
		{`https://a\.example/x|https://[^/]+/y`, true},
		{`https://.*\.example\.com/.*`, true}, // the first .* can match a slash
		{`https://[^/]+\.example\.com/.*`, false},
		{`https://api\.stripe\.com/v1/charges(/[A-Za-z0-9_]+)?`, false},
		{`https://(a|b)\.example\.com/.*|https://c\.example\.com/`, false},
		{`https://www\.[a-z]+\.com/`, false},
		{`(?i)^https://A\.example/$`, false},
	} {
		if got := pattern(t, tt.expression).AllowsAnyHost(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.expression, got, tt.want)
		}
	}
	if domain(t, "example.com").AllowsAnyHost() {
		t.Error("a domain allows any host")
	}
}

// TestCrossesHost checks which patterns can match a slash before the path.
func TestCrossesHost(t *testing.T) {
	for _, tt := range []struct {
		expression string
		want       bool
	}{
		{`https://.*\.example\.com/.*`, true}, // also https://evil.tld/x.example.com/
		{`https://.*`, true},
		{`.*`, true},
		{`https?://\S+\.example\.com/`, true},
		{`https://[^.]+\.example\.com/.*`, true},
		{`https://(a|.+)\.example\.com/.*`, true},
		{`https://a\.example/x|https://.*\.b\.example/`, true},
		{`https://a\.example.*`, true}, // also https://a.example.evil.tld/
		{`https://[^/]+\.example\.com/.*`, false},
		{`https://[a-z0-9-]+\.example\.com(:[0-9]+)?/.*`, false},
		{`https://a\.example/x|https://b\.example/.*`, false},
		{`https://(a\.example/.*|b\.example/)`, false},
		{`(?i)^https://A\.example/.*$`, false},
		{`\Qhttps://a.example/\E.*`, false},
		{`http://echo\.demo\.svc(\.cluster\.local)?:8080/.*`, false},
	} {
		if got := pattern(t, tt.expression).CrossesHost(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.expression, got, tt.want)
		}
	}
}

// TestValidOrigin checks that only the spelling of browsers is a valid origin.
func TestValidOrigin(t *testing.T) {
	for _, good := range []string{
		"https://example.com", "http://localhost:3000", "https://a-b.c_d.example:8443", "http://127.0.0.1:8080", "http://[::1]:3000", "https://[2001:db8::1]",
		"https://xn--bcher-kva.example", "chrome-extension://abcdefghijklmnopabcdefghijklmnop", "moz-extension://0d3a6f1e-3c1b-4a43-9c2e-5f0a1b2c3d4e", "capacitor://localhost",
	} {
		if !policy.ValidOrigin(good) {
			t.Errorf("%q was refused", good)
		}
	}
	for _, bad := range []string{
		"", "null", "example.com", "https://", "https://.example.com", "https://evil.test:.example.com", "https://a..example.com", "https://example.com.", "https://example.com:",
		"https://example.com:0", "https://example.com:443", "http://example.com:80", "https://example.com:08443", "https://example.com:65536", "https://example.com:1:2", "https://:8443",
		"https://127.1", "https://0x7f.0.0.1", "https://[::1", "https://::1", "https://[0:0::1]", "https://EXAMPLE.com", "https://bücher.example", "https://a@b.example", "https://example.com/", "https://exa mple.com",
	} {
		if policy.ValidOrigin(bad) {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestOriginIndex compares the index with a walk over all endpoints.
func TestOriginIndex(t *testing.T) {
	rules := []policy.Rule{
		domain(t, "example.com"), domain(t, "app.example.com"), domain(t, "example.org"),
		pattern(t, `https://[a-z]+\.example\.com`), pattern(t, `https://pr-\d+\.example\.net`), pattern(t, `(?i)HTTPS://PR-\d+\.example\.net`),
		pattern(t, `http://localhost:\d+|https://example\.org`), pattern(t, `.*`),
	}
	destinations := []policy.Rule{domain(t, "a.test"), pattern(t, `https://b\.test/v1/.*`), pattern(t, `https://b\.test/v[12]/.*|https://c\.test/`)}
	random := rand.New(rand.NewPCG(1, 2))
	some := func(from []policy.Rule) (list []policy.Rule) {
		for range 1 + random.IntN(2) {
			list = append(list, from[random.IntN(len(from))])
		}
		return list
	}
	origins := []string{
		"", "null", "https://example.com", "https://app.example.com", "https://x.app.example.com", "https://example.org", "https://example.com:8443",
		"https://pr-7.example.net", "http://localhost:3000", "https://com", "https://.example.com", "https://nobody.test",
	}
	urls := []string{"https://a.test/", "https://x.a.test/y", "https://b.test/v1/x", "https://b.test/v2/x", "https://c.test/", "https://d.test/"}
	for range 200 {
		var endpoints []*policy.Endpoint
		for i := range random.IntN(4) {
			endpoints = append(endpoints, &policy.Endpoint{Name: string(rune('a' + i)), Project: "p", Environment: "e", Origins: some(rules), Destinations: some(destinations)})
		}
		all, err := policy.NewSnapshot(endpoints, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, origin := range origins {
			walked, found := all.Allowing(origin, "p", "e"), all.Allowing(origin, "", "")
			want := slices.Collect(walked)
			got := slices.Collect(found)
			slices.SortFunc(got, func(a, b *policy.Endpoint) int { return strings.Compare(a.Name, b.Name) })
			if !slices.Equal(slices.Compact(got), want) {
				t.Fatalf("%q: %v, want %v", origin, got, want)
			}
			for _, url := range urls {
				want := slices.ContainsFunc(want, func(e *policy.Endpoint) bool { return e.AllowsURL(url) })
				if got := policy.AllowTarget(found, url, "https", 443); got != want {
					t.Fatalf("%q to %q: %v, want %v", origin, url, got, want)
				}
			}
		}
	}
}

func TestDecideByOneEndpoint(t *testing.T) {
	credentialA := &policy.Credential{ID: "cred_a", Project: "p", Environment: "e", Value: secret.New([]byte("value-of-a"))}
	credentialB := &policy.Credential{ID: "cred_b", Project: "p", Environment: "e", Value: secret.New([]byte("value-of-b"))}
	s, err := policy.NewSnapshot([]*policy.Endpoint{
		{Name: "a", Project: "p", Environment: "e", Origins: []policy.Rule{domain(t, "example.com")}, Destinations: []policy.Rule{domain(t, "a.test")}, Credentials: []*policy.Credential{credentialA}, Methods: []string{"GET"}},
		{Name: "b", Project: "p", Environment: "e", Origins: []policy.Rule{domain(t, "example.com")}, Destinations: []policy.Rule{domain(t, "b.test")}, Credentials: []*policy.Credential{credentialB}},
		{Name: "h", Project: "p", Environment: "e", Origins: []policy.Rule{domain(t, "example.org")}, Destinations: []policy.Rule{pattern(t, "http://h.test/")}, Credentials: []*policy.Credential{credentialA}, Ports: []uint16{80}},
	}, []*policy.Credential{credentialA, credentialB})
	if err != nil {
		t.Fatal(err)
	}
	use := func(ids ...string) (uses []policy.Use) {
		for _, id := range ids {
			uses = append(uses, policy.Use{ID: id, Place: policy.InHeader})
		}
		return uses
	}
	for _, tt := range []struct {
		name string
		in   policy.Request
		want string
	}{
		{"a's", policy.Request{Origin: "https://example.com", Method: "GET", Scheme: "https", Port: 443, URL: "https://a.test/", Uses: use("cred_a", "cred_a")}, "a: allowed"},
		{"b's", policy.Request{Origin: "https://example.com", Method: "PUT", Scheme: "https", Port: 443, URL: "https://x.b.test/", Uses: use("cred_b")}, "b: allowed"},
		{"a's destination with b's credential", policy.Request{Origin: "https://example.com", Method: "GET", Scheme: "https", Port: 443, URL: "https://a.test/", Uses: use("cred_b")}, "a: a credential is not allowed: cred_b in the header: not among the endpoint's credentials"},
		{"both credentials", policy.Request{Origin: "https://example.com", Method: "GET", Scheme: "https", Port: 443, URL: "https://a.test/", Uses: use("cred_a", "cred_b")}, "a: a credential is not allowed: cred_b in the header: not among the endpoint's credentials"},
		{"another method", policy.Request{Origin: "https://example.com", Method: "POST", Scheme: "https", Port: 443, URL: "https://a.test/"}, "a: the method is not allowed"},
		{"http with a credential", policy.Request{Origin: "https://example.org", Method: "GET", Scheme: "http", Port: 80, URL: "http://h.test/", Uses: use("cred_a")}, "h: a credential would go over http"},
		{"http without one", policy.Request{Origin: "https://example.org", Method: "GET", Scheme: "http", Port: 80, URL: "http://h.test/"}, "h: allowed"},
		{"another port", policy.Request{Origin: "https://example.org", Method: "GET", Scheme: "http", Port: 443, URL: "http://h.test/"}, "h: the port is not allowed"},
	} {
		v := s.Scope("p", "e").Decide(&tt.in)
		if v.String() != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, v, tt.want)
		}
		if best := s.Scope("p", "e").Judge(&tt.in)[0]; best.Fault != v.Fault {
			t.Errorf("%s: explained as %s", tt.name, best)
		}
	}
	for _, scope := range []*policy.Scope{s.Scope("p", "other"), s.Scope("other", "e"), nil} {
		if v := scope.Decide(&policy.Request{Origin: "https://example.com"}); v.Fault != policy.NoEndpoint {
			t.Errorf("no such scope: %s", v)
		}
	}
}

func TestSnapshotsRefuseTwoOfAName(t *testing.T) {
	if _, err := policy.NewSnapshot([]*policy.Endpoint{{Name: "a"}, {Name: "a"}}, nil); err == nil {
		t.Error("two endpoints of one name")
	}
	two := []*policy.Credential{{ID: "cred_a"}, {ID: "cred_a"}}
	if _, err := policy.NewSnapshot([]*policy.Endpoint{{Name: "a", Credentials: two}}, two); err == nil {
		t.Error("two credentials with one id in one endpoint")
	}
}
