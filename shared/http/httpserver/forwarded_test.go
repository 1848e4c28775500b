package httpserver_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
)

func TestWhoAsksAndWhere(t *testing.T) {
	report := func(rt *httpapi.Router) {
		rt.Get("/x", func(w http.ResponseWriter, r *http.Request) error {
			info := httpapi.InfoFrom(r.Context())
			known := map[bool]string{true: " known", false: ""}[info.ClientKnown]
			return httpapi.WriteBody(w, r, "text/plain", []byte(info.ClientAddress+known+" "+info.BaseURL()), "")
		})
	}
	direct := serve(t, setup{routes: report})
	behind := serve(t, setup{routes: report, environ: map[string]string{"TRUSTED_PROXIES": "127.0.0.0/8, 10.0.0.0/8, 2001:db8::/32"}})
	named := serve(t, setup{routes: report, environ: map[string]string{"PUBLIC_URL": "https://api.example.com/base/", "TRUSTED_PROXIES": "127.0.0.0/8"}})
	for _, tc := range []struct {
		name   string
		on     *running
		host   string
		in     []string
		client string
		url    string
	}{
		{"direct", direct, "api.example.com:8080", nil, "127.0.0.1", "http://api.example.com:8080"},
		{"direct, IPv6", direct, "[::1]:8080", nil, "127.0.0.1", "http://[::1]:8080"},
		{
			"direct, claims are not believed", direct, "a.example",
			[]string{"X-Forwarded-For", "1.2.3.4", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil.example", "Forwarded", "for=1.2.3.4;host=evil.example;proto=https"},
			"127.0.0.1", "https://a.example", // the scheme is, as it can only be raised
		},
		{"direct, http is claimed", direct, "a.example", []string{"X-Forwarded-Proto", "http"}, "127.0.0.1", "http://a.example"},
		{
			"behind a proxy", behind, "entries.internal",
			[]string{"X-Forwarded-For", "1.2.3.4", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "api.example.com"},
			"1.2.3.4", "https://api.example.com",
		},
		{"behind a proxy that says nothing", behind, "a.example", nil, "127.0.0.1", "http://a.example"},
		{"the last that is not trusted", behind, "a.example", []string{"X-Forwarded-For", "6.6.6.6, 1.2.3.4, 10.0.0.7"}, "1.2.3.4", "http://a.example"},
		{"over several lines", behind, "a.example", []string{"X-Forwarded-For", "6.6.6.6, 1.2.3.4", "X-Forwarded-For", "10.0.0.7"}, "1.2.3.4", "http://a.example"},
		{"all trusted", behind, "a.example", []string{"X-Forwarded-For", "10.0.0.1, 10.0.0.7"}, "10.0.0.1", "http://a.example"},
		{"garbage", behind, "a.example", []string{"X-Forwarded-For", "1.2.3.4, <script>"}, "127.0.0.1", "http://a.example"},
		{"with ports", behind, "a.example", []string{"X-Forwarded-For", "1.2.3.4:5555"}, "1.2.3.4", "http://a.example"},
		{"IPv6", behind, "a.example", []string{"X-Forwarded-For", "2606:4700::1, 2001:db8::5"}, "2606:4700::1", "http://a.example"},
		{"IPv6 with a port", behind, "a.example", []string{"X-Forwarded-For", "[2606:4700::1]:443"}, "2606:4700::1", "http://a.example"},
		{"mapped IPv4", behind, "a.example", []string{"X-Forwarded-For", "1.2.3.4, ::ffff:10.0.0.1"}, "1.2.3.4", "http://a.example"},
		{"the nearest proxy's host", behind, "a.example", []string{"X-Forwarded-Host", "evil.example, api.example.com"}, "127.0.0.1", "http://api.example.com"},
		{"Forwarded", behind, "a.example", []string{"Forwarded", `for=evil;host=evil.example, for=1.2.3.4;Host="api.example.com:8443";Proto=HTTPS`}, "127.0.0.1", "https://api.example.com:8443"},
		{
			"a client's Forwarded, behind a proxy that writes X-Forwarded", behind, "a.example",
			[]string{"Forwarded", "host=evil.example;proto=http", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "api.example.com"},
			"127.0.0.1", "https://api.example.com",
		},
		{
			"a client's Forwarded, behind a proxy that writes X-Forwarded-For alone", behind, "a.example",
			[]string{"Forwarded", "host=evil.example;proto=https", "X-Forwarded-For", "1.2.3.4"},
			"1.2.3.4", "http://a.example",
		},
		{"a proxy behind the end of TLS", behind, "a.example", []string{"X-Forwarded-Proto", "https, http"}, "127.0.0.1", "https://a.example"},
		{"one such of Forwarded", behind, "a.example", []string{"Forwarded", "proto=https, proto=http;host=api.example.com"}, "127.0.0.1", "https://api.example.com"},
		{"a scheme of its own", behind, "a.example", []string{"X-Forwarded-Proto", "javascript"}, "127.0.0.1", "http://a.example"},
		{"a host that ends the field", behind, "a.example", []string{"X-Forwarded-Host", `x>; rel="next"`}, "127.0.0.1", "http://a.example"},
		{"a Host that ends the field", direct, "x;rel=y", nil, "127.0.0.1", ""},
		{"PUBLIC_URL", named, "a.example", []string{"X-Forwarded-Host", "b.example"}, "127.0.0.1", "https://api.example.com/base"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var request strings.Builder
			request.WriteString("GET /x HTTP/1.1\r\nConnection: close\r\nHost: " + tc.host + "\r\n")
			for i := 0; i < len(tc.in); i += 2 {
				request.WriteString(tc.in[i] + ": " + tc.in[i+1] + "\r\n")
			}
			got, err := raw(t, tc.on.public, request.String()+"\r\n")
			if err != nil {
				t.Fatal(err)
			}
			_, body, _ := strings.Cut(got, "\r\n\r\n")
			want := tc.client + " " + tc.url
			if tc.on != direct {
				want = tc.client + " known " + tc.url
			}
			if body != want {
				t.Errorf("got %q, want %q", body, want)
			}
		})
	}
	if n := strings.Count(direct.log.String(), "PUBLIC_URL is not set"); n != 1 {
		t.Errorf("the log says %d times that PUBLIC_URL is not set; want once", n)
	}
}

// TestPrivateProxies checks what the word private lets a peer say of its client.
func TestPrivateProxies(t *testing.T) {
	peers := faulttest.NewPeers(t)
	s := serve(t, setup{listener: peers, environ: map[string]string{"TRUSTED_PROXIES": "private"}, routes: func(rt *httpapi.Router) {
		rt.Get("/x", func(w http.ResponseWriter, r *http.Request) error {
			info := httpapi.InfoFrom(r.Context())
			return httpapi.WriteBody(w, r, "text/plain", fmt.Appendf(nil, "%s %v %s", info.ClientAddress, info.ClientKnown, info.BaseURL()), "")
		})
	}})
	for _, tt := range []struct {
		name, peer string
		forwarded  []string // lines of X-Forwarded-For
		client     string
		known      bool
	}{
		{"a gateway", "10.0.0.5", []string{"203.0.113.9"}, "203.0.113.9", true},
		{"a gateway behind a load balancer", "172.31.0.5", []string{"6.6.6.6, 203.0.113.9, 192.168.1.1", "10.0.0.7"}, "203.0.113.9", true},
		{"addresses of the provider's own", "100.64.3.4", []string{"2001:db8::9, fd00::1"}, "2001:db8::9", true},
		{"IPv6", "fd12::5", []string{"[2001:db8::9]:4711"}, "2001:db8::9", true},
		{"a private client behind a gateway may claim any address", "10.0.0.5", []string{"8.8.8.8, 10.3.3.3"}, "8.8.8.8", true},
		{"a private client that claims none", "10.0.0.5", []string{"10.3.3.3"}, "10.0.0.5", false},
		{"a pod without a gateway", "10.244.1.7", nil, "10.244.1.7", false},
		{"a node of a load balancer that rewrites addresses", "192.168.7.7", nil, "192.168.7.7", false},
		{"no address at the end", "10.0.0.5", []string{"203.0.113.9, <script>"}, "10.0.0.5", false},
		{"neither private nor public", "10.0.0.5", []string{"127.0.0.1, 169.254.169.254, ::1, 224.0.0.1, 0.0.0.0"}, "10.0.0.5", false},
		{"a public peer", "203.0.113.7", []string{"8.8.8.8"}, "203.0.113.7", false},
		{"a public peer beside a private range", "172.32.0.1", []string{"8.8.8.8"}, "172.32.0.1", false},
		{"a loopback peer", "127.0.0.9", []string{"8.8.8.8"}, "127.0.0.9", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: peers.Dialer(tt.peer).DialContext}}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.public+"/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = "a.example"
			req.Header["X-Forwarded-For"] = tt.forwarded
			req.Header.Set("X-Forwarded-Host", "evil.example") // believed of no private peer
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if want := fmt.Sprintf("%s %v http://a.example", tt.client, tt.known); string(got) != want || err != nil {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		})
	}
}
