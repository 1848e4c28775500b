package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/faulttest"
)

// allowAllHosts returns an endpoint that allows all hosts, so that only the URL parser and the guard can refuse a request.
func allowAllHosts(w *world) string {
	return endpoint(w, "web", m{
		"destinations": []m{{"pattern": `https://[^/]+/.*`}, {"pattern": `http://[^/]+/.*`}},
		"credentials":  nil, // a credential without destinations cannot be used for all hosts
		"ports":        []json.Number{"443", "80", json.Number(w.target.port), json.Number(w.plain.port)},
		"allowHTTP":    true,
	})
}

func TestTargetsThatReadDifferently(t *testing.T) {
	w := run(t, setup{open: true, manifests: allowAllHosts})
	for name, target := range map[string]string{
		"user info":                  "https://api.lectern.test@evil.tld/",
		"user info with port":        "https://api.lectern.test:443@evil.tld/",
		"backslash":                  `https://evil.tld\@api.lectern.test/`,
		"backslash path":             `https://api.lectern.test\.evil.tld/`,
		"backslashes":                `https:\\api.lectern.test\`,
		"tab":                        "https://api.lec\ttern.test/",
		"newline":                    "https://api.lectern.test/\n",
		"CRLF":                       "https://api.lectern.test/ HTTP/1.1\r\nHost: evil.tld\r\n\r\n",
		"encoded dot in host":        "https://api%2electern.test/",
		"encoded slash in host":      "https://api.lectern.test%2f.evil.tld/",
		"hidden dots":                "https://api.lectern.test/a/..%2f..%2fb",
		"decimal IPv4":               "https://2130706433/",
		"octal IPv4":                 "https://0177.0.0.1/",
		"hex IPv4":                   "https://0x7f.0.0.1/",
		"short IPv4":                 "https://127.1/",
		"IPv6 zone":                  "https://[fe80::1%25lo]/",
		"file":                       "file:///etc/passwd",
		"gopher":                     "gopher://127.0.0.1:6379/_INFO",
		"ftp":                        "ftp://api.lectern.test/",
		"data":                       "data:text/html,x",
		"javascript":                 "javascript:alert(1)",
		"placeholder as host":        "https://{{cred_main}}/",
		"placeholder in host":        "https://{{cred_main}}.evil.tld/",
		"placeholder as port":        "https://api.lectern.test:{{cred_main}}/",
		"placeholder as scheme":      "{{cred_main}}://api.lectern.test/",
		"placeholder split by port":  "https://api.lectern.test:44{{cred_main}}/",
		"port zero":                  "https://api.lectern.test:0/",
		"port beyond":                "https://api.lectern.test:65536/",
		"port with a second":         "https://api.lectern.test:443:80/",
		"port of another base":       "https://api.lectern.test:0x1bb/",
		"no host":                    "https:///x",
		"no host with port":          "https://:443/",
		"invisible characters":       "https://api.lectern\u200b\u200d.test/",
		"a name of dots":             "https://../",
		"full-width slash":           "https://api.lectern.test／evil/",
		"full-width at sign":         "https://api.lectern.test＠evil.tld/",
		"right-to-left":              "https://\u202eapi.lectern.test/",
		"encoded NUL in the path":    "https://api.lectern.test/%00",
		"encoded backslash segments": "https://api.lectern.test/a%5c..%5cb",
	} {
		t.Run(name, func(t *testing.T) {
			before := w.dialled()
			if got := w.do(call{target: target}); got.code() != "invalid_target" || got.StatusCode != 400 {
				t.Errorf("%q: %d %s", target, got.StatusCode, got.body)
			}
			if w.dialled() != before {
				t.Errorf("%q: something was dialled or looked up", target)
			}
		})
	}
}

func TestLookAlikeDestinations(t *testing.T) {
	w := run(t, setup{open: true, manifests: func(w *world) string {
		return endpoint(w, "web", m{"destinations": []m{{"domain": "example.com"}, {"pattern": `https://api\.example\.org/v1/.*`}, {"pattern": `a|https://x\.example/`}}})
	}})
	for name, target := range map[string]string{
		"prefix":                    "https://evilexample.com/",
		"suffix":                    "https://example.com.evil.tld/",
		"in the path":               "https://evil.tld/example.com",
		"in the query":              "https://evil.tld/?https://example.com/",
		"in the fragment":           "https://evil.tld/#@example.com",
		"Cyrillic":                  "https://ехample.com/",
		"punycode look-alike":       "https://xn--mple-43d3a6i.com/",
		"dot for another":           "https://apixexample.org/v1/x",
		"pattern as prefix":         "https://api.example.org/v1",
		"pattern left by dots":      "https://api.example.org/v1/../v2/",
		"pattern left by more dots": "https://api.example.org/v1/%2e%2e/v2/",
		"pattern is not anchored":   "https://evil.tld/https://api.example.org/v1/x",
		"alternative not anchored":  "https://x.example/y",
		"newline after":             "https://x.example/%0Ay",
		"query helps to match":      "https://api.example.org/?/v1/",
		"case of the path":          "https://api.example.org/V1/x",
		"other port":                "https://example.com:8443/",
		"port 80 over https":        "https://example.com:80/",
		"port 443 over http":        "http://example.com:443/",
		"http":                      "http://example.com/",
	} {
		t.Run(name, func(t *testing.T) {
			before := w.dialled()
			if got := w.do(call{target: target}); got.code() != "destination_not_allowed" {
				t.Errorf("%q: %d %s", target, got.StatusCode, got.body)
			}
			if w.dialled() != before {
				t.Errorf("%q: something was dialled or looked up", target)
			}
		})
	}
}

func TestSameDestinationInOtherSpelling(t *testing.T) {
	w := run(t, setup{open: true})
	for _, host := range []string{"API.Lectern.TEST", "api.lectern.test.", "ａｐｉ.lectern.test", "api。lectern。test"} {
		s := w.do(call{target: "https://" + host + ":0" + w.target.port + "/x"}).seen(t)
		if s.Host != "api.lectern.test:"+w.target.port {
			t.Errorf("%s: the target saw the host %s", host, s.Host)
		}
	}
}

func TestAddressesThatAreNotPublic(t *testing.T) {
	w := run(t, setup{manifests: allowAllHosts}) // loopback is not allowed
	// Addresses in the URL, with a port that listens.
	for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "169.254.169.254", "[fd00:ec2::254]", "10.0.0.1", "168.63.129.16", "224.0.0.1", "[ff02::1]"} {
		for _, target := range []string{"https://" + host + ":" + w.target.port + "/", "http://" + host + ":" + w.plain.port + "/"} {
			if got := w.do(call{target: target}); got.code() != "destination_not_allowed" || got.StatusCode != 403 {
				t.Errorf("%s: %d %s", target, got.StatusCode, got.body)
			}
		}
	}
	// Names that resolve to such an address: alone, as one of several, and at the end of a chain of names.
	for name, addresses := range map[string][]string{
		"loopback.test": {"127.0.0.1"}, "metadata.test": {"169.254.169.254"}, "mapped.test": {"::ffff:127.0.0.1"},
		"sixtofour.test": {"2002:7f00:1::1"}, "nat64.test": {"64:ff9b::7f00:1"}, "private.test": {"10.1.2.3", "192.168.1.1", "fd00::1"},
	} {
		w.names.set(name, addresses...)
		if got := w.do(call{target: "https://" + name + ":" + w.target.port + "/"}); got.code() != "destination_not_allowed" {
			t.Errorf("%s: %d %s", name, got.StatusCode, got.body)
		}
		if strings.Contains(w.do(call{target: "https://" + name + ":" + w.target.port + "/"}).body, addresses[0]) {
			t.Errorf("%s: the refusal tells the address", name)
		}
	}
	if n := w.target.accepted.Load() + w.plain.accepted.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// TestDeniedRanges denies one of the addresses that are allowed.
func TestDeniedRanges(t *testing.T) {
	w := run(t, setup{open: true, environ: map[string]string{"PROXY_DENIED_RANGES": "127.0.0.2/32,2600:1900::/28"}})
	w.do(call{target: w.url("/")}).seen(t)
	for _, address := range []string{"127.0.0.2", "2600:1901::1"} {
		w.names.set("allowed.test", address)
		if got := w.do(call{target: "https://allowed.test/"}); got.code() != "destination_not_allowed" {
			t.Errorf("%s: %d %s", address, got.StatusCode, got.body)
		}
	}
}

func TestRebindingOfAnAllowedName(t *testing.T) {
	// 127.0.0.1 represents a public address, 127.0.0.2 a private one.
	w := run(t, setup{environ: map[string]string{"PROXY_ALLOWED_RANGES": "127.0.0.1/32"}})
	good, bad := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	w.names.setFunc("api.lectern.test", func(times int) []netip.Addr {
		if times%2 == 0 {
			return []netip.Addr{good}
		}
		return []netip.Addr{bad}
	})
	for i := range 6 {
		resp, err := w.client.Do(w.request(call{target: w.url("/"), headers: []string{"Connection", "close"}}))
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, resp)
		// An idle connection needs no lookup: the guard checked its address when it was made.
		if got.StatusCode != 200 && got.code() != "destination_not_allowed" {
			t.Errorf("%d: %d %s", i, got.StatusCode, got.body)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusTemporaryRedirect)
	})})
	got := w.do(call{target: w.url("/"), headers: []string{"Authorization", "{{cred_main}}"}})
	if got.StatusCode != http.StatusTemporaryRedirect || got.Header.Get("X-Proxy-Worker-Success") != "true" || w.target.accepted.Load() != 1 {
		t.Errorf("%d %v, %d connections", got.StatusCode, got.Header, w.target.accepted.Load())
	}
}

func TestLookAlikeOrigins(t *testing.T) {
	w := run(t, setup{open: true, manifests: func(w *world) string {
		return endpoint(w, "web", m{"origins": []m{{"domain": "example.com"}, {"pattern": `https://app-[0-9]+\.example\.org`}, {"pattern": `(a+)+\.example|.*`}}, "environment": "wide", "credentials": nil}) +
			endpoint(w, "narrow", m{"origins": []m{{"domain": "example.com"}, {"pattern": `https://app-[0-9]+\.example\.org`}, {"pattern": `https://(a|aa|a?a)+\.example`}}})
	}})
	for _, good := range []string{"https://example.com", "https://a.b.example.com", "https://app-7.example.org", "https://aaaa.example"} {
		if got := w.do(call{target: w.url("/")}.from(good)); got.StatusCode != 200 {
			t.Errorf("%s: %d %s", good, got.StatusCode, got.body)
		}
	}
	start := time.Now()
	for _, bad := range []string{
		"null", "", "example.com", "http://example.com", "https://example.com:8443", "https://example.com:443", "https://example.com/", "https://example.com.", "HTTPS://EXAMPLE.COM",
		"https://evilexample.com", "https://example.com.evil.tld", "https://user@example.com", "https://example.com#", "https://example.com?", "https://example.com https://evil.tld", "https://example.com, https://evil.tld",
		"https://.example.com", "https://evil.test:.example.com", "https://a..example.com", "https://-", "https://evil.test:1.example.com", "https://[example.com", "https://exa_mple.com:.example.com",
		"https://xapp-7.example.org", "https://app-7.example.org.evil.tld", "https://app-7xexample.org", "xhttps://app-7.example.org", "https://app-.example.org", "file://", "about:blank", "https://", "://example.com",
		"https://" + strings.Repeat("a", 400) + "!.example",
	} {
		before := w.dialled()
		if got := w.do(call{target: w.url("/")}.from(bad)); got.code() != "origin_not_allowed" || got.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%q: %d %s %v", bad, got.StatusCode, got.body, got.Header)
		}
		if w.dialled() != before {
			t.Errorf("%q: something was dialled", bad)
		}
	}
	if took := time.Since(start); took > waitTimeout {
		t.Errorf("patterns took %s", took)
	}
	// Even a pattern that matches everything does not allow an invalid origin.
	for _, bad := range []string{"null", "https://a/b", "x", "https://.example.com", "https://evil.test:.example.com", "https://example.com:0", "https://example.com:443", "https://example.com:08443", "https://127.1", "https://a.example."} {
		r := w.request(call{target: w.url("/")}.from(bad))
		r.Header.Set("X-Environment", "wide")
		resp, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, resp); got.code() != "origin_not_allowed" {
			t.Errorf("%q: %d %s", bad, got.StatusCode, got.body)
		}
	}
	r := w.request(call{target: w.url("/")})
	r.Header.Add("Origin", origin)
	resp, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, resp); got.code() != "origin_not_allowed" {
		t.Errorf("two origins: %d %s", got.StatusCode, got.body)
	}
}

// raw sends bytes, and returns up to n answers. After the first, raw ends its side of the connection, so that the server
// ends the connection instead of waiting for more of a request.
func (w *world) raw(text string, n int) []answer {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.base, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(waitTimeout))
	if _, err := io.WriteString(conn, text); err != nil {
		w.t.Fatal(err)
	}
	var answers []answer
	r := bufio.NewReader(conn)
	for range n {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			break
		}
		answers = append(answers, read(w.t, resp))
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	return answers
}

func TestRawRequests(t *testing.T) {
	w := run(t, setup{open: true})
	query := "?url=" + url.QueryEscape(w.url("/"))
	head := func(line string, headers ...string) string {
		return line + "\r\nHost: api.example\r\n" + strings.Join(append([]string{"X-Project-ID: " + project, "X-Environment: prod", "Origin: " + origin}, headers...), "\r\n") + "\r\n\r\n"
	}
	for _, tt := range []struct {
		name, in string
		status   int
		code     string
	}{
		{"CONNECT", "CONNECT 127.0.0.1:" + w.target.port + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 501, "upgrade_not_supported"},
		{"CONNECT with a path", head("CONNECT /proxy" + query + " HTTP/1.1"), 501, "upgrade_not_supported"},
		{"WebSocket without Connection", head("GET /proxy"+query+" HTTP/1.1", "Upgrade: h2c, WebSocket"), 501, "upgrade_not_supported"},
		{"absolute form", head("GET http://169.254.169.254/ HTTP/1.1"), 400, "invalid_target"},
		{"absolute form of a path", head("GET http://169.254.169.254/latest/meta-data HTTP/1.1"), 404, "route_not_found"},
		{"duplicated Host", head("GET /proxy"+query+" HTTP/1.1", "Host: evil.tld"), 400, "-"},
		{"no Host", "GET /proxy" + query + " HTTP/1.1\r\n\r\n", 400, "-"},
		{"line break in the URL", head("GET /proxy?url=https://api.lectern.test/\r\nX: y HTTP/1.1"), 400, "-"},
		{"two lengths", head("POST /proxy"+query+" HTTP/1.1", "Content-Length: 1", "Content-Length: 2") + "xy", 400, "-"},
		{"bad length", head("POST /proxy"+query+" HTTP/1.1", "Content-Length: +1") + "x", 400, "-"},
		{"unknown transfer coding", head("POST /proxy"+query+" HTTP/1.1", "Transfer-Encoding: gzip, chunked") + "0\r\n\r\n", 501, "-"},
		{"space before the colon", head("GET /proxy"+query+" HTTP/1.1", "X-K : v"), 400, "-"},
		{"NUL in a header", head("GET /proxy"+query+" HTTP/1.1", "X-K: a\x00b"), 400, "-"},
		{"bare CR in a header", head("GET /proxy"+query+" HTTP/1.1", "X-K: a\rX-L: b"), 400, "-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := w.dialled()
			got := w.raw(tt.in, 1)
			if len(got) != 1 || got[0].StatusCode != tt.status || tt.code != "-" && got[0].code() != tt.code {
				t.Errorf("%v", got)
			}
			if w.dialled() != before {
				t.Error("something was dialled")
			}
		})
	}
	if strings.Contains(w.log.String(), `"level":"ERROR"`) {
		t.Errorf("a client's fault is logged as one of ours: %s", w.log)
	}
}

// TestSmuggling sends requests that servers frame differently. The target must get at most one unambiguous request.
func TestSmuggling(t *testing.T) {
	var seenPaths = make(chan string, 16)
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return // the request was cut off
		}
		seenPaths <- fmt.Sprintf("%s %s %q te=%v cl=%d x=%q", r.Method, r.URL.Path, b, r.TransferEncoding, r.ContentLength, r.Header["X-K"])
	})})
	query := "?url=" + url.QueryEscape(w.url("/in"))
	head := "POST /proxy" + query + " HTTP/1.1\r\nHost: a\r\nX-Project-ID: " + project + "\r\nX-Environment: prod\r\nOrigin: " + origin + "\r\n"
	last := head + "Connection: close\r\n"
	inner := "GET /proxy?url=" + url.QueryEscape(w.url("/smuggled")) + " HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, tt := range []struct {
		name, in string
		want     []string // the requests that the target may get, in order
	}{
		{"a request within a chunk", head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(inner), inner), []string{`POST /in "GET /proxy`}},
		{"a request after the last chunk", head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner, []string{`POST /in ""`}},
		{"chunk with bare LF", head + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", nil},
		// net/http accepts these, as RFC 9112 allows (sections 2.2, 5.2 and 6.1). The target gets one plain request.
		{"CL and TE", last + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", []string{`POST /in "hello"`}},
		{"TE and CL", last + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", []string{`POST /in ""`}},
		{"TE in HTTP/1.0", strings.Replace(head, "HTTP/1.1", "HTTP/1.0", 1) + "Transfer-Encoding: chunked\r\n\r\n" + inner, []string{`POST /in "" te=[] cl=0`}},
		{"obs-fold", last + "Content-Length: 0\r\nX-K: a\r\n  b: c\r\n\r\n", []string{`POST /in "" te=[] cl=0 x=["a b: c"]`}},
		{"obs-fold in the coding", last + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", []string{`POST /in ""`}},
		{"bare LF in the request line", strings.Replace(last, "\r\n", "\n", 1) + "Content-Length: 0\r\n\r\n", []string{`POST /in "" te=[] cl=0`}},
		{"bare LF in a header", last + "Content-Length: 0\r\nX-K: v\n\r\n", []string{`POST /in "" te=[] cl=0 x=["v"]`}},
		{"bare LF throughout", strings.ReplaceAll(last, "\r\n", "\n") + "Content-Length: 2\n\nhi", []string{`POST /in "hi" te=[] cl=2`}},
		{"chunk extension", head + "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n", []string{`POST /in "hello"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_ = w.raw(tt.in, 3)
			var got []string
			for {
				select {
				case s := <-seenPaths:
					got = append(got, s)
					continue
				default:
				}
				break
			}
			for i, s := range got {
				if strings.HasPrefix(s, "GET") || i >= len(tt.want) && tt.want != nil || tt.want != nil && !strings.HasPrefix(s, tt.want[i]) {
					t.Errorf("the target saw %q, want %q", got, tt.want)
				}
			}
			if len(got) < len(tt.want) {
				t.Errorf("the target saw %q, want %q", got, tt.want)
			}
		})
	}
}

// TestMalformedChunks sends malformed chunked bodies, each followed by a second request that must never be served. The
// target reads the body or not, the body has placeholders, or the proxy refuses the request.
func TestMalformedChunks(t *testing.T) {
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unread" {
			_ = http.NewResponseController(w).EnableFullDuplex()
			w.WriteHeader(http.StatusForbidden)
			return
		}
		echo(w, r)
	})})
	addr := strings.TrimPrefix(w.base, "http://")
	for _, tt := range []struct{ name, target, headers string }{
		{"read", w.url("/read"), ""},
		{"unread", w.url("/unread"), ""},
		{"with values", w.url("/read"), "X-Use-Body-Templating: true\r\nContent-Type: application/json\r\n"},
		{"refused", "https://evil.tld/", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faulttest.MalformedChunks(t, addr, "POST /proxy?url="+url.QueryEscape(tt.target)+" HTTP/1.1\r\nHost: a\r\nX-Project-ID: "+project+
				"\r\nX-Environment: prod\r\nOrigin: "+origin+"\r\n"+tt.headers)
		})
	}
}
