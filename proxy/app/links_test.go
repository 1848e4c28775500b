package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLinks lets a target lead its clients on, by paths that name the header.
func TestLinks(t *testing.T) {
	var header, value string
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()[header] = []string{value}
	})})
	host := "api.lectern.test:" + w.target.port
	const location = "Location"
	expand := strings.NewReplacer("TARGET", "https://"+host, "FORM", w.base+"/proxy/to/https/"+host, "NAMED", w.base+"/for/pr_demo/prod/to/https/"+host, "HOST", host).Replace
	base, named, url := "/proxy/to/https/HOST/v1/bot%7B%7B%20cred_main%20%7D%7D/items", "/for/pr_demo/prod/to/https/HOST/v1/items", ""
	for _, tt := range []struct {
		name, path string
		keyed      bool
		header     string
		sent       string
		want       m // the headers of links; nil: what was sent
	}{
		{"the same origin", base, false, location, "TARGET/v2/x?page=2#top", m{location: "FORM/v2/x?page=2#top"}},
		{"the same origin, with a key", base, true, location, "HTTPS://HOST/v2/x", m{location: "FORM/v2/x"}},
		{"the same origin, where the path names the project", named, true, location, "TARGET/v2/x", m{location: "NAMED/v2/x"}},
		{"an absolute path", base, true, location, "/v2/x?a=%2F", m{location: "FORM/v2/x?a=%2F"}},
		{"dots that would leave the form", base, true, location, "/../../../../x", m{location: "FORM/x"}},
		{"a relative path", named, false, location, "../x", m{location: "NAMED/x"}},
		{"a relative path beside a placeholder", base, false, location, "send", m{location: "FORM/v1/bot%7B%7Bcred_main%7D%7D/send"}},
		{"a query", named, false, location, "?page=2", m{location: "NAMED/v1/items?page=2"}},
		{"the value itself", base, false, location, "TARGET/v1/bot" + canary + "/send", m{location: "FORM/v1/bot[redacted]/send"}},
		{"another origin", base, false, location, "https://elsewhere.test/x", nil},
		{"another origin, with a key", base, true, location, "https://elsewhere.test/x", m{"X-Proxy-Location": "https://elsewhere.test/x"}},
		{"another scheme, with a key", base, true, location, "http://HOST/x", m{"X-Proxy-Location": "http://HOST/x"}},
		{"another port, with a key", base, true, location, "https://api.lectern.test/x", m{"X-Proxy-Location": "https://api.lectern.test/x"}},
		{"our own host, with a key", base, true, location, w.base + "/proxy/to/https/elsewhere.test/", m{"X-Proxy-Location": w.base + "/proxy/to/https/elsewhere.test/"}},
		{"a placeholder, with a key", base, true, location, "/x?{{cred_other}}", m{"X-Proxy-Location": "/x?{{cred_other}}"}},
		{"an encoded placeholder, with a key", base, true, location, "TARGET/x?%7B%7Bcred_other}}", m{"X-Proxy-Location": "TARGET/x?%7B%7Bcred_other}}"}},
		{"user info, with a key", base, true, location, "https://HOST@elsewhere.test/", m{"X-Proxy-Location": "https://HOST@elsewhere.test/"}},
		{"a host alone, with a key", base, true, location, "//elsewhere.test/x", m{"X-Proxy-Location": "//elsewhere.test/x"}},
		{"a tab, with a key", base, true, location, "/\t/elsewhere.test/x", m{"X-Proxy-Location": "/\t/elsewhere.test/x"}},
		{"backslashes, with a key", base, true, location, `/\elsewhere.test/x`, m{"X-Proxy-Location": `/\elsewhere.test/x`}},
		{"no slashes, with a key", base, true, location, "https:elsewhere.test", m{"X-Proxy-Location": "https:elsewhere.test"}},
		{"three slashes, with a key", base, true, location, "https:///elsewhere.test", m{"X-Proxy-Location": "https:///elsewhere.test"}},
		{"another address", named, true, "Content-Location", "/v1/items/1", m{"Content-Location": "NAMED/v1/items/1"}},
		{"another address elsewhere", named, true, "Content-Location", "https://elsewhere.test/", m{"X-Proxy-Content-Location": "https://elsewhere.test/"}},
		{"pages", named, true, "Link", `<TARGET/v1/items?page=2>; rel="next", </v1/items?page=9>; rel="last, of all"`,
			m{"Link": `<NAMED/v1/items?page=2>; rel="next", <NAMED/v1/items?page=9>; rel="last, of all"`}},
		{"pages here and elsewhere", named, true, "Link", `<https://elsewhere.test/?page=2>; rel="next", </v1/items?page=9>; rel="last"`,
			m{"Link": `<NAMED/v1/items?page=9>; rel="last"`, "X-Proxy-Link": `<https://elsewhere.test/?page=2>; rel="next"`}},
		{"pages that readers see differently", named, true, "Link", `</v1/items>; title='<https://elsewhere.test/>'; rel="next"`,
			m{"X-Proxy-Link": `</v1/items>; title='<https://elsewhere.test/>'; rel="next"`}},
		{"pages elsewhere without a key", named, false, "Link", `<https://elsewhere.test/?page=2>; rel="next"`, nil},
		{"the other form", url, false, location, "TARGET/x", nil},
		{"the other form, relative", url, true, location, "/x", nil},
		{"the other form, with a key", url, true, location, "TARGET/x", m{"X-Proxy-Location": "TARGET/x"}},
		{"the other form, a host alone, with a key", url, true, location, "//HOST/x", m{"X-Proxy-Location": "//HOST/x"}},
		{"the other form, pages", url, true, "Link", `<TARGET/?page=2>; rel="next"`, m{"X-Proxy-Link": `<TARGET/?page=2>; rel="next"`}},
	} {
		header, value = tt.header, expand(tt.sent)
		c := call{path: expand(tt.path), query: "a=1"}
		if tt.path == url {
			c = call{target: w.url("/v1/items")}
		}
		if tt.path == named {
			c.without = []string{"X-Project-Id", "X-Environment"}
		}
		if tt.keyed {
			c.headers = []string{"X-Proxy-Api-Key", "rk_x"}
		}
		got := m{}
		answer := w.do(c)
		for _, name := range []string{"Location", "Content-Location", "Link", "X-Proxy-Location", "X-Proxy-Content-Location", "X-Proxy-Link"} {
			if lines := answer.Header[name]; lines != nil {
				got[name] = strings.Join(lines, ", ")
			}
		}
		want := m{}
		for name, text := range tt.want {
			want[name] = expand(fmt.Sprint(text))
		}
		if tt.want == nil {
			want[header] = value
		}
		if diff := cmp.Diff(want, got); diff != "" || answer.StatusCode != 200 {
			t.Errorf("%s: %d %s (-want +got):\n%s", tt.name, answer.StatusCode, answer.body, diff)
		}
	}
}

// TestLinksOfAPublicURL checks that a link keeps the form and the host of the base URL that the client used.
func TestLinksOfAPublicURL(t *testing.T) {
	w := run(t, setup{open: true, environ: map[string]string{"PUBLIC_URL": "https://api.example.com"}, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/v2/x")
	})})
	host := "api.lectern.test:" + w.target.port
	for _, tt := range []struct{ name, path, want string }{
		{"the API's host", "/proxy/to/https/", "https://api.example.com/proxy/to/https/"},
		{"a host of the proxy's own", "/to/https/", strings.Replace(w.base, "http:", "https:", 1) + "/to/https/"},
	} {
		// The scheme is that of PUBLIC_URL, as not every gateway sends X-Forwarded-Proto.
		answer := w.do(call{path: tt.path + host + "/v1/x", query: "a=1"})
		if got, want := answer.Header.Get("Location"), tt.want+host+"/v2/x"; got != want || answer.StatusCode != 200 {
			t.Errorf("%s: %d, Location %q; want %q", tt.name, answer.StatusCode, got, want)
		}
	}
}
