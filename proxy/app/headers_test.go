package app_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestHeadersThatCommand lets a target send headers that control the servers in front of the proxy, with "-" and with
// "_".
func TestHeadersThatCommand(t *testing.T) {
	commands := []string{
		"X-Accel-Redirect", "X-Accel-Buffering", "X_accel_redirect", "X-Sendfile", "X-Sendfile-Temporary", "X_sendfile", "X-Lighttpd-Send-File",
		"X-Reproxy-Url", "X-Reproxy-File", "X-Litespeed-Location", "X-Envoy-Immediate-Health-Check-Fail",
		"Set_cookie", "Access_control_allow_origin", "X_Proxy_Worker_Success",
	}
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range commands {
			w.Header()[name] = []string{"of-the-target"}
		}
		w.Header().Set("X-Accelerated", "kept")
	})})
	got := w.do(call{target: w.url("/")})
	for name, values := range got.Header {
		if strings.Contains(fmt.Sprint(values), "of-the-target") {
			t.Errorf("%s: %v", name, values)
		}
	}
	if got.Header.Get("X-Accelerated") != "kept" || got.Header["X-Accel-Buffering"] != nil {
		t.Errorf("%v", got.Header)
	}
}

// TestHeadersThatOverride sends headers with which targets accept another client address, URL or method.
func TestHeadersThatOverride(t *testing.T) {
	w := run(t, setup{open: true})
	c := call{target: w.url("/"), headers: []string{"X-Kept_too", "kept"}}
	for _, name := range []string{
		"X-Original-Url", "X-Rewrite-Url", "X-Original-Uri", "X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "X-Host",
		"Client-Ip", "X-Remote-Addr", "X-Remote-Ip", "X-Originating-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "X-Forwarded", "Forwarded-For", "X-Envoy-Original-Path",
		"X_forwarded_for", "X_Original_URL", "Client_ip", "X_Http_Method_Override", "X_project_id", "X_proxy_api_key", "Proxy_authorization", "X_api_key",
	} {
		c.headers = append(c.headers, name, "of-the-caller")
	}
	s := w.do(c).seen(t)
	for name, values := range s.Header {
		if strings.Contains(fmt.Sprint(values), "of-the-caller") {
			t.Errorf("the target saw %s", name)
		}
	}
	if len(s.Header["X-Kept_too"]) != 1 {
		t.Errorf("the target saw %v", s.Header)
	}
}

// TestOffersOfAnUpgradeAreIgnored offers other protocols, as Java's HttpClient and "curl --http2" do. The target must see
// the request alone.
func TestOffersOfAnUpgradeAreIgnored(t *testing.T) {
	w := run(t, setup{open: true})
	for _, offer := range []string{
		"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
		"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__", "Connection: uPgRaDe", "Connection: Upgrade\r\nUpgrade: \x80, TLS/1.2",
	} {
		got := w.raw(fmt.Sprintf("POST /proxy?url=%s HTTP/1.1\r\nHost: a\r\nX-Project-ID: %s\r\nX-Environment: prod\r\nOrigin: %s\r\n%s\r\nContent-Length: 4\r\n\r\nbody",
			url.QueryEscape(w.url("/")), project, origin, offer), 1)
		if len(got) != 1 {
			t.Fatalf("%q: %v", offer, got)
		}
		s := got[0].seen(t)
		for _, name := range []string{"Connection", "Upgrade", "Http2-Settings"} {
			if s.Header[name] != nil || got[0].Header[name] != nil {
				t.Errorf("%q: the target saw %v, and the caller %v", offer, s.Header, got[0].Header)
			}
		}
		if s.Body != "body" || got[0].Proto != "HTTP/1.1" {
			t.Errorf("%q: %+v, %s", offer, s, got[0].Proto)
		}
	}
}

// TestOwnKeyStays sends an API key of the platform next to a placeholder and in a trailer. The target must not get it.
func TestOwnKeyStays(t *testing.T) {
	w := run(t, setup{open: true})
	s := w.do(call{target: w.url("/"), headers: []string{"X-Api-Key", "rk_ours", "X-Api-Key", "{{cred_main}}", "X-Api-Key", "rk_other"}}).seen(t)
	if fmt.Sprint(s.Header["X-Api-Key"]) != "["+canary+"]" {
		t.Errorf("the target saw %v", s.Header)
	}
	r := w.request(call{method: "POST", target: w.url("/"), body: "body", chunked: true})
	r.Trailer = http.Header{"X-Api-Key": {"rk_ours"}, "X_api_key": {"rk_ours"}, "X-Forwarded-For": {"192.0.2.1"}, "Authorization": {"of-the-caller"}, "X-Sum": {"1"}}
	resp, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if s := read(t, resp).seen(t); len(s.Trailer) != 1 || s.Trailer.Get("X-Sum") != "1" {
		t.Errorf("the target saw the trailers %v", s.Trailer)
	}
}

// TestTrailersThatAreHeaders lets a target send trailers that are only allowed as headers.
func TestTrailersThatAreHeaders(t *testing.T) {
	targets := newSpareListeners(t, 1)
	w := run(t, setup{open: true, manifests: func(w *world) string { return toSpare(w, "web", targets, nil) }})
	good := &tls.Config{Certificates: []tls.Certificate{w.authority.certificate(t, time.Now().Add(time.Hour), "*.lectern.test")}}
	port := rawTarget(t, targets, good, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Cache-Control, X-Sum, X-Accel-Redirect\r\n\r\n2\r\nok\r\n0\r\n"+
			"Cache-Control: public\r\nAuthorization: x\r\nX-Accel-Redirect: /internal\r\nX_sendfile: /etc/passwd\r\n"+
			"Location: https://evil.test/\r\nVary: *\r\nExpires: 0\r\nCDN-Cache-Control: public\r\nContent-Security-Policy: x\r\nX-Sum: 1\r\nX-Late: 2\r\n\r\n")
	})
	resp, err := w.client.Do(w.request(call{target: "https://api.lectern.test:" + port + "/"}))
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, resp)
	if got.body != "ok" || resp.Trailer.Get("X-Sum") != "1" || resp.Trailer.Get("X-Late") != "2" || len(resp.Trailer) != 2 {
		t.Errorf("%q, trailers %v", got.body, resp.Trailer)
	}
}

// toSpare returns an endpoint whose targets are the spare listeners.
func toSpare(w *world, name string, s *spareListeners, further m) string {
	var ports []json.Number
	for _, port := range s.ports {
		ports = append(ports, json.Number(strconv.Itoa(port)))
	}
	spec := m{"destinations": []m{{"pattern": `https://[a-z.]*lectern\.test:\d+/.*`}}, "ports": ports}
	for k, v := range further {
		spec[k] = v
	}
	return endpoint(w, name, spec)
}

// TestDotSegmentsAndPlaceholders names a credential in a segment that a dot segment removes.
func TestDotSegmentsAndPlaceholders(t *testing.T) {
	w := run(t, setup{open: true})
	for _, path := range []string{
		"/api/{{ cred_main }}/../{{ cred_other }}", "/api/{{ cred_main }}/%2e%2e/{{ cred_other }}", "/api/x{{ cred_main }}y/..", "/a/{{cred_main}}/b/../../{{cred_other}}", "/{{cred_main}}/.%2E/",
	} {
		before := w.dialled()
		if got := w.do(call{target: w.url(path)}); got.code() != "invalid_target" {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.body)
		}
		if w.dialled() != before {
			t.Errorf("%s: something was dialled", path)
		}
	}
	if s := w.do(call{target: w.url("/a/../{{ cred_main }}/./b/c/../x?y={{cred_main}}")}).seen(t); s.URI != "/"+canary+"/b/x?y="+canary {
		t.Errorf("the target saw %s", s.URI)
	}
}

// TestUnknownProjects calls an existing and an unknown project from a page that only a third project allows. The page
// must not see a difference.
func TestUnknownProjects(t *testing.T) {
	w := run(t, setup{open: true, manifests: func(w *world) string {
		return endpoint(w, "web", nil) + endpoint(w, "other", m{"projectId": "pr_other", "origins": []m{{"domain": "example.org"}}, "credentials": []string{"cred_foreign"}})
	}})
	ask := func(projectID, environment, origin string) string {
		got := w.do(call{target: w.url("/"), without: []string{"X-Project-Id", "X-Environment"}, headers: []string{"X-Project-ID", projectID, "X-Environment", environment}}.from(origin))
		for _, name := range []string{"Date", "X-Request-Id"} {
			got.Header.Del(name)
		}
		return fmt.Sprintf("%d %v %s", got.StatusCode, got.Header, got.body)
	}
	for _, origin := range []string{"https://app.example.org", "https://nobody.example"} {
		known, unknown := ask(project, "prod", origin), ask("pr_nobody", "prod", origin)
		if strings.ReplaceAll(unknown, "pr_nobody", project) != known {
			t.Errorf("%s:\nknown   %s\nunknown %s", origin, known, unknown)
		}
		if other := ask(project, "nowhere", origin); other != known {
			t.Errorf("%s:\nknown   %s\nunknown environment %s", origin, known, other)
		}
	}
}

// TestAmbiguousAnswers lets a target frame its answers ambiguously, and send more than it announced. The next caller must
// not get any part of it.
func TestAmbiguousAnswers(t *testing.T) {
	const poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"
	targets := newSpareListeners(t, 16)
	w := run(t, setup{open: true, manifests: func(w *world) string { return toSpare(w, "web", targets, nil) }})
	config := &tls.Config{Certificates: []tls.Certificate{w.authority.certificate(t, time.Now().Add(time.Hour), "*.lectern.test")}}
	for _, tt := range []struct {
		name, say, later string // later is sent while the connection is idle
		want             string // the body for the first caller; "" is a refusal
		kept             bool   // net/http keeps the connection
	}{
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\nok", poison, "", false},
		{"a length twice", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", "", "ok", true},
		{"both framings", "HTTP/1.1 200 OK\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "", "ok", true},
		{"two codings", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n2\r\nok\r\n0\r\n\r\n", poison, "", false},
		{"an unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", poison, "", false},
		{"a folded header", "HTTP/1.1 200 OK\r\nX-A: b\r\n Content-Length: 40\r\nContent-Length: 2\r\n\r\nok", "", "ok", true},
		{"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "", "ok", true},
		{"bytes with the answer", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + poison, "", "ok", false},
		{"bytes with an answer without a body", "HTTP/1.1 204 No Content\r\n\r\n" + poison, "", "", false},
		{"bytes after the last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" + poison, "", "ok", false},
		{"bytes after the answer", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", poison, "ok", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			idle, ended := make(chan struct{}), make(chan struct{})
			var met atomic.Bool
			// The target has read one request. It answers further ones on the connection properly.
			port := rawTarget(t, targets, config, func(c net.Conn) {
				if met.Swap(true) {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfresh")
					return
				}
				defer close(ended)
				_, _ = io.WriteString(c, tt.say)
				<-idle
				_, _ = io.WriteString(c, tt.later) // fails if the proxy has closed the connection
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nkept")
				}
			})
			c := call{target: "https://api.lectern.test:" + port + "/", headers: []string{"X-K", "{{cred_main}}"}}
			got := w.do(c)
			if tt.want == "" && got.code() != "upstream_unreachable" && got.StatusCode != http.StatusNoContent || tt.want != "" && got.body != tt.want {
				t.Errorf("the first caller got %d %s", got.StatusCode, got.body)
			}
			close(idle)
			want := "kept"
			if !tt.kept {
				want = "fresh"
				select { // otherwise net/http could take the bytes for the answer to the next request
				case <-ended:
				case <-time.After(waitTimeout):
					t.Fatal("the connection was not closed")
				}
			}
			if got := w.do(c); got.body != want {
				t.Errorf("the next caller got %d %s, want %s", got.StatusCode, got.body, want)
			}
		})
	}
}
