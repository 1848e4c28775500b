package target_test

import (
	"bytes"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/proxy/internal/target"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "https://api.example.com/v1/x?q=1", "https://api.example.com/v1/x"},
		{"no path", "https://api.example.com", "https://api.example.com/"},
		{"no path, a query", "https://api.example.com?q=1", "https://api.example.com/"},
		{"mixed case", "HTTPS://API.Example.COM/V1", "https://api.example.com/V1"},
		{"trailing dot", "https://api.example.com./", "https://api.example.com/"},
		{"default port", "https://api.example.com:443/", "https://api.example.com/"},
		{"default port of http", "http://api.example.com:80/", "http://api.example.com/"},
		{"default port with zeros", "https://api.example.com:0443/", "https://api.example.com/"},
		{"empty port", "https://api.example.com:/", "https://api.example.com/"},
		{"other port", "https://api.example.com:8443/", "https://api.example.com:8443/"},
		{"http", "http://api.example.com/", "http://api.example.com/"},
		{"IDN", "https://bücher.example/", "https://xn--bcher-kva.example/"},
		{"punycode", "https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"},
		{"punycode in capitals", "https://XN--BCHER-KVA.example/", "https://xn--bcher-kva.example/"},
		{"full-width letters and stops", "https://ａｐｉ．example。com/", "https://api.example.com/"},
		{"Cyrillic look-alike", "https://ехаmple.com/", "https://xn--mple-43d3a6i.com/"},
		{"underscore", "https://a_b.example.com/", "https://a_b.example.com/"},
		{"IPv4", "https://192.0.2.1/", "https://192.0.2.1/"},
		{"IPv6", "https://[2001:DB8:0:0::1]:8443/", "https://[2001:db8::1]:8443/"},
		{"IPv4-mapped", "https://[::ffff:192.0.2.1]/", "https://[::ffff:192.0.2.1]/"},
		{"dot segments", "https://example.com/a/./b/../c", "https://example.com/a/c"},
		{"dot segments at the end", "https://example.com/a/..", "https://example.com/"},
		{"dot segments above the root", "https://example.com/../../a", "https://example.com/a"},
		{"encoded dots", "https://example.com/a/%2e%2E/c", "https://example.com/c"},
		{"encoded letters", "https://example.com/%61%2dz%7e", "https://example.com/a-z~"},
		{"encoded slash", "https://example.com/a%2fb", "https://example.com/a%2Fb"},
		{"spaces and Unicode", "https://example.com/a b/é\"<>", "https://example.com/a%20b/%C3%A9%22%3C%3E"},
		{"empty segments", "https://example.com//a//", "https://example.com//a//"},
		{"fragment", "https://example.com/a#/b", "https://example.com/a"},
		{"at sign after the host", "https://example.com/@evil.tld", "https://example.com/@evil.tld"},
		{"placeholder in the path", "https://example.com/bot{{ cred_a }}/x", "https://example.com/bot{{ cred_a }}/x"},
		{"other braces", "https://example.com/{{name}}", "https://example.com/%7B%7Bname%7D%7D"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := target.Parse(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if got.AsSent() != tt.want {
				t.Errorf("%s: got %s, want %s", tt.in, got.AsSent(), tt.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"nothing":                    "",
		"no scheme":                  "example.com",
		"relative":                   "//example.com/",
		"one slash":                  "https:/example.com/",
		"no slash":                   "https:example.com",
		"three slashes":              "https:///example.com",
		"backslashes for slashes":    `https:\\example.com\`,
		"file":                       "file:///etc/passwd",
		"gopher":                     "gopher://example.com/_x",
		"ftp":                        "ftp://example.com/",
		"javascript":                 "javascript:alert(1)",
		"data":                       "data:text/plain,x",
		"leading space":              " https://example.com/",
		"user":                       "https://user@example.com/",
		"user and password":          "https://example.com:443@evil.tld/",
		"empty user":                 "https://@evil.tld/",
		"encoded user":               "https://example.com%40evil.tld/",
		"backslash before at":        `https://evil.tld\@example.com/`,
		"backslash as path":          `https://example.com\.evil.tld/`,
		"backslash in the path":      `https://example.com/a\..\b`,
		"tab in the host":            "https://exam\tple.com/",
		"newline in the path":        "https://example.com/a\nb",
		"CRLF in the path":           "https://example.com/a\r\nHost: evil.tld",
		"NUL":                        "https://example.com/\x00",
		"encoded NUL":                "https://example.com/%00",
		"DEL":                        "https://example.com/\x7f",
		"not UTF-8":                  "https://example.com/\xff",
		"encoded dot in the host":    "https://example%2ecom/",
		"encoded slash in the host":  "https://example.com%2f.evil.tld/",
		"space in the host":          "https://exam ple.com/",
		"empty label":                "https://example..com/",
		"leading dot":                "https://.example.com/",
		"two trailing dots":          "https://example.com../",
		"only a dot":                 "https://./",
		"long label":                 "https://" + strings.Repeat("a", 64) + ".com/",
		"long name":                  "https://" + strings.Repeat("a.", 127) + "com/",
		"bad punycode":               "https://xn--a.example/",
		"invisible character":        "https://exam\u200dple.com/",
		"full-width percent":         "https://example.com％2f.evil.tld/",
		"full-width slash":           "https://example.com／evil.tld/",
		"decimal address":            "https://2130706433/",
		"octal address":              "https://0177.0.0.1/",
		"hex address":                "https://0x7f000001/",
		"hex parts":                  "https://0x7f.0x0.0x0.0x1/",
		"short address":              "https://127.1/",
		"zero":                       "https://0/",
		"full-width digits, short":   "https://１２７.1/",
		"name that ends in a number": "https://example.1/",
		"address with leading zero":  "https://127.0.0.01/",
		"too large part":             "https://127.0.0.256/",
		"IPv6 zone":                  "https://[fe80::1%25eth0]/",
		"IPv6 zone, bare":            "https://[fe80::1%eth0]/",
		"IPv6 without brackets":      "https://fe80::1/",
		"IPv6 not closed":            "https://[fe80::1/",
		"after the bracket":          "https://[::1]evil.tld/",
		"IPv4 in brackets":           "https://[127.0.0.1]/",
		"port no number":             "https://example.com:https/",
		"port with sign":             "https://example.com:+443/",
		"port 0":                     "https://example.com:0/",
		"port too large":             "https://example.com:65536/",
		"two ports":                  "https://example.com:443:80/",
		"dots after a placeholder":   "https://example.com/{{cred_a}}/../b",
		"dots far after one":         "https://example.com/{{cred_a}}/b/c/../../%2e%2e/d",
		"hidden dots":                "https://example.com/a/..%2fb",
		"hidden dots, twice":         "https://example.com/a/%252e%252e/b",
		"hidden dots, backslash":     "https://example.com/a/..%5cb",
		"dots with parameters":       "https://example.com/a/..;x=1/b",
		"encoded five times":         "https://example.com/%2525252541",
		"bad encoding":               "https://example.com/%zz",
		"cut encoding":               "https://example.com/%2",
		"placeholder as host":        "https://{{ cred_a }}/",
		"placeholder in the host":    "https://{{cred_a}}.example.com/",
		"placeholder as port":        "https://example.com:{{cred_a}}/",
		"placeholder as scheme":      "{{cred_a}}://example.com/",
		"too long":                   "https://example.com/" + strings.Repeat("a", target.MaxBytes),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := target.Parse(in); err == nil {
				t.Errorf("%q was taken for %s", in, got.AsSent())
			}
		})
	}
}

func TestFinish(t *testing.T) {
	values := map[string][]byte{
		"cred_a": []byte("a/b?c#d&e=f g%\r\n{{ cred_b }}é"),
		"cred_b": []byte("second"),
		"cred_d": []byte(".."),
		"cred_e": []byte("%2e%2e"),
		"cred_n": nil,
	}
	value := func(id string) []byte { return values[id] }
	const a = "a%2Fb%3Fc%23d%26e%3Df%20g%25%0D%0A%7B%7B%20cred_b%20%7D%7D%C3%A9"
	for _, tt := range []struct {
		name, in string
		want     target.Final
	}{
		{"in the path", "https://example.com/x{{ cred_a }}/y", target.Final{Match: "https://example.com/x" + a + "/y", Path: "/x" + a + "/y"}},
		{"in the query", "https://example.com/?k={{cred_a}}&l={{cred_b}}", target.Final{Match: "https://example.com/", Path: "/", Query: "k=" + a + "&l=second", HasQuery: true}},
		{"query as sent", "https://example.com/?a=%7b&b=\"<é>|&&=;%zz+ &{{x}}", target.Final{Match: "https://example.com/", Path: "/", Query: "a=%7b&b=\"<%C3%A9>|&&=;%zz+%20&{{x}}", HasQuery: true}},
		{"empty query", "https://example.com/?", target.Final{Match: "https://example.com/", Path: "/", HasQuery: true}},
		{"placeholder in the fragment", "https://example.com/#{{ cred_a }}", target.Final{Match: "https://example.com/", Path: "/"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parsed, err := target.Parse(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parsed.Finish(value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			u := url.URL{Scheme: "https", Host: "example.com", RawPath: got.Path, RawQuery: got.Query, ForceQuery: got.HasQuery}
			if u.Path, err = url.PathUnescape(got.Path); err != nil {
				t.Fatal(err)
			}
			want := got.Path
			if got.HasQuery {
				want += "?" + got.Query
			}
			if u.RequestURI() != want {
				t.Errorf("goes out as %q, want %q", u.RequestURI(), want)
			}
		})
	}
	for _, in := range []string{"https://example.com/a/{{cred_d}}/b", "https://example.com/a/.{{cred_n}}./b", "https://example.com/a/{{cred_e}}/b", "https://example.com/a/{{cred_d}};x/b"} {
		parsed, err := target.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parsed.Finish(value); err == nil {
			t.Errorf("%s became %s", in, got.Path)
		}
	}
}

// TestFinishBuildsNothingTooLong inserts a long value for a thousand placeholders. Finish refuses that before it builds
// the text.
func TestFinishBuildsNothingTooLong(t *testing.T) {
	parsed, err := target.Parse("https://example.com/" + strings.Repeat("{{cred_a}}", 500) + "?" + strings.Repeat("{{cred_a}}", 500))
	if err != nil {
		t.Fatal(err)
	}
	value := bytes.Repeat([]byte("/"), 16<<10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = parsed.Finish(func(string) []byte { return value })
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Error("a target of 48 MB was taken")
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
}

func TestIDs(t *testing.T) {
	parsed, err := target.Parse("https://example.com/{{cred_a}}/{{ cred_b }}?x={{cred_a}}&y={{cred_}}#{{cred_c}}")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cred_a", "cred_b", "cred_a"}, parsed.IDs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"https://api.example.com/v1/x?q=1", "HTTP://ａｐｉ．example。com:080/%2e%2e/a", "https://[::ffff:7f00:1]:8443/", "https://u@h/", `https://a\b`,
		"https://127.0.0.1./", "https://example.com/{{ cred_a }}?{{cred_b}}#x", "https://xn--bcher-kva.example/;..;/", "https://example.com/%25252e",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := target.Parse(raw)
		if err != nil {
			return
		}
		again, err := target.Parse(got.AsSent())
		if err != nil || again.AsSent() != got.AsSent() || again.Address() != got.Address() {
			t.Fatalf("%q: %s is not its own normal form (%v)", raw, got.AsSent(), err)
		}
		if ip, err := netip.ParseAddr(got.Host); err == nil && ip.String() != got.Host || got.Host == "" || strings.ToLower(got.Host) != got.Host {
			t.Fatalf("%q: host %q", raw, got.Host)
		}
		final, err := got.Finish(func(string) []byte { return []byte("v/é") })
		if err != nil {
			return
		}
		// net/url must parse the same host and path. Otherwise the proxy would send the request to another target than
		// the one it checked.
		u, err := url.Parse(final.Match)
		if err != nil || u.Hostname() != got.Host || u.Scheme != got.Scheme || u.EscapedPath() != final.Path || u.User != nil {
			t.Fatalf("%q: read as host %q and path %q, by others as %+v (%v)", raw, got.Host, final.Path, u, err)
		}
		for i := range len(final.Path + final.Query) {
			if c := (final.Path + final.Query)[i]; c <= ' ' || c >= 0x7F {
				t.Fatalf("%q: %q in the request line", raw, c)
			}
		}
	})
}
