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
