package app_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestForwards(t *testing.T) {
	w := run(t, setup{open: true})
	for _, path := range []string{"/proxy", "/"} {
		got := w.do(call{path: path, method: "PROPFIND", target: w.url("/a%2fb/./c?x=%7b&y=é \"|&&;=%zz#frag"), body: "body", headers: []string{"X-Custom", "kept", "X-Custom", "twice"}}).seen(t)
		if got.Method != "PROPFIND" || got.URI != "/a%2Fb/c?x=%7b&y=%C3%A9%20\"|&&;=%zz" || got.Body != "body" || got.Host != "api.lectern.test:"+w.target.port {
			t.Errorf("%s: the target saw %+v", path, got)
		}
		if v := got.Header["X-Custom"]; !slices.Equal(v, []string{"kept", "twice"}) {
			t.Errorf("X-Custom: %q", v)
		}
	}
}

func TestNothingIsAddedAndWhatIsOursIsRemoved(t *testing.T) {
	w := run(t, setup{open: true})
	r := call{target: w.url("/"), headers: []string{
		"X-Use-Body-Templating", "yes", "X-Proxy-Api-Key", "rk_x", "Cookie", "session=1", "X-Api-Key", "rk_mine",
		"Connection", "keep-alive, X-Hop", "X-Hop", "1", "Keep-Alive", "300", "Proxy-Authorization", "Basic eA==", "Te", "gzip", "Proxy-Connection", "x",
		"Forwarded", "for=1.2.3.4", "X-Forwarded-For", "1.2.3.4", "X-Forwarded-Host", "h", "X-Forwarded-Proto", "http", "X-Forwarded-Anything", "x", "X-Real-Ip", "1.2.3.4", "Via", "1.1 x",
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate", "a=b", "Baggage", "a=b",
		"Authorization", "Bearer mine", "User-Agent", "", "Accept-Language", "eo",
	}}
	got := w.do(r).seen(t)
	delete(got.Header, "Accept-Encoding")
	var names []string
	for name := range got.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{"Accept-Language", "Authorization", "Origin"}; !slices.Equal(names, want) {
		t.Errorf("the target saw headers %v, want %v", names, want)
	}
}

func TestTemplating(t *testing.T) {
	const plain = "https://example.net" // its endpoint has no credentials
	w := run(t, setup{open: true, manifests: func(w *world) string {
		return standard(w) + endpoint(w, "plain", m{"origins": []m{{"domain": "example.net"}}, "credentials": nil})
	}})
	on := []string{"X-Use-Body-Templating", "true"}
	for _, tt := range []struct {
		name  string
		in    call
		check func(s seen) bool
	}{
		{"in the path", call{target: w.url("/bot{{ cred_main }}/send")}, func(s seen) bool { return s.URI == "/bot"+canary+"/send" }},
		{"in the query", call{target: w.url("/?key={{cred_other}}&q=1")}, func(s seen) bool {
			return s.URI == "/?key=second%2Fsecret%2Bwith%3Dodd%26chars%3F&q=1"
		}},
		{"in a header", call{target: w.url("/"), headers: []string{"Authorization", "Bearer {{ cred_main }}"}}, func(s seen) bool {
			return s.Header.Get("Authorization") == "Bearer "+canary
		}},
		{"in a header as it is", call{target: w.url("/"), headers: []string{"X-K", "a{{cred_other}}b{{cred_main}}c"}}, func(s seen) bool {
			return s.Header.Get("X-K") == "a"+other+"b"+canary+"c"
		}},
		{"in Basic credentials", call{target: w.url("/"), headers: []string{"Authorization", "basic  " + base64Of("AC1:{{ cred_other }}")}}, func(s seen) bool {
			return s.Header.Get("Authorization") == "Basic "+base64Of("AC1:"+other)
		}},
		{"as Basic credentials", call{target: w.url("/"), headers: []string{"Authorization", "Basic {{ cred_main }}"}}, func(s seen) bool { return s.Header.Get("Authorization") == "Basic "+canary }},
		{"not in the base64 of another header", call{target: w.url("/"), headers: []string{"X-K", "Basic " + base64Of("a:{{cred_main}}"), "Authorization", "Bearer " + base64Of("a:{{cred_main}}")}}, func(s seen) bool {
			return s.Header.Get("X-K") == "Basic "+base64Of("a:{{cred_main}}") && s.Header.Get("Authorization") == "Bearer "+base64Of("a:{{cred_main}}")
		}},
		{"Basic credentials without one", call{target: w.url("/"), headers: []string{"Authorization", "Basic YTpi"}}, func(s seen) bool { return s.Header.Get("Authorization") == "Basic YTpi" }},
		{"in X-Api-Key", call{target: w.url("/"), headers: []string{"X-Api-Key", "{{cred_main}}"}}, func(s seen) bool { return s.Header.Get("X-Api-Key") == canary }},
		{"not in a header's name or in other braces", call{target: w.url("/{{x}}"), headers: []string{"X-K", "{{ name }} {cred_main} {{CRED_main}} {{ cred_}}"}}, func(s seen) bool {
			return s.Header.Get("X-K") == "{{ name }} {cred_main} {{CRED_main}} {{ cred_}}" && s.URI == "/%7B%7Bx%7D%7D"
		}},
		{"a value is not searched again", call{target: w.url("/"), headers: []string{"X-K", "{{cred_nested}}"}}, func(s seen) bool { return s.Header.Get("X-K") == nested }},
		{"in a JSON body", call{method: "POST", target: w.url("/"), body: `{"k":"{{ cred_other }}"}`, headers: append(on, "Content-Type", "application/json")}, func(s seen) bool {
			want := `{"k":"` + other + `"}`
			return s.Body == want && s.Length == int64(len(want))
		}},
		{"in a chunked body", call{method: "PUT", target: w.url("/"), body: `{{cred_main}}`, chunked: true, headers: append(on, "Content-Type", "text/plain")}, func(s seen) bool {
			return s.Body == canary && s.Length == int64(len(canary))
		}},
		{"in a form body", call{method: "PATCH", target: w.url("/"), body: `k={{cred_other}}&x=+`, headers: append(on, "Content-Type", "application/x-www-form-urlencoded")}, func(s seen) bool {
			return s.Body == "k=second%2Fsecret%2Bwith%3Dodd%26chars%3F&x=+"
		}},
		{"on DELETE", call{method: "DELETE", target: w.url("/"), body: `<k>{{cred_main}}</k>`, headers: append(on, "Content-Type", "application/xml")}, func(s seen) bool { return s.Body == "<k>"+canary+"</k>" }},
		{"on DELETE without a body", call{method: "DELETE", target: w.url("/"), headers: on}, func(s seen) bool { return s.Body == "" && s.Length == 0 }},
		{"no placeholder in it", call{method: "POST", target: w.url("/"), body: `plain`, headers: append(on, "Content-Type", "text/plain")}, func(s seen) bool { return s.Body == "plain" && s.Length == 5 }},
		{"body off by default", call{method: "POST", target: w.url("/"), body: `{{cred_main}}`, headers: []string{"Content-Type", "text/plain"}}, func(s seen) bool { return s.Body == "{{cred_main}}" }},
		{"body off for another value", call{method: "POST", target: w.url("/"), body: `{{cred_main}}`, headers: []string{"Content-Type", "text/plain", "X-Use-Body-Templating", "True"}}, func(s seen) bool { return s.Body == "{{cred_main}}" }},
		{"body off for the header twice", call{method: "POST", target: w.url("/"), body: `{{cred_main}}`, headers: append(slices.Clone(on), append(on, "Content-Type", "text/plain")...)}, func(s seen) bool { return s.Body == "{{cred_main}}" }},
		{"body off for another method", call{method: "QUERY", target: w.url("/"), body: `{{cred_main}}`, headers: append(on, "Content-Type", "text/plain")}, func(s seen) bool { return s.Body == "{{cred_main}}" }},
		{"body off on GET", call{method: "GET", target: w.url("/"), body: `{{cred_main}}`, headers: append(on, "Content-Type", "text/plain")}, func(s seen) bool { return s.Body == "{{cred_main}}" }},
		{"unknown ids in a body that is not looked at", call{method: "POST", target: w.url("/"), body: `{{cred_nobody}}`}, func(s seen) bool { return s.Body == "{{cred_nobody}}" }},
		{"narrowed, at its place", call{target: w.url("/narrow/x"), headers: []string{"X-K", "{{cred_narrow}}"}}, func(s seen) bool { return s.Header.Get("X-K") == narrow }},
		{"Range is removed with a credential", call{target: w.url("/"), headers: []string{"X-K", "{{cred_main}}", "Range", "bytes=5-", "If-Range", "x"}}, func(s seen) bool {
			return s.Header["Range"] == nil && s.Header["If-Range"] == nil
		}},
		{"Range is kept by an endpoint without any", call{target: w.url("/"), headers: []string{"Range", "bytes=5-"}}.from(plain), func(s seen) bool { return s.Header.Get("Range") == "bytes=5-" }},
		{"encodings are narrowed with a credential", call{target: w.url("/"), headers: []string{"X-K", "{{cred_main}}", "Accept-Encoding", "br, gzip;q=0.8, deflate, zstd"}}, func(s seen) bool {
			return s.Header.Get("Accept-Encoding") == "gzip;q=0.8, zstd"
		}},
		{"encodings are kept by an endpoint without any", call{target: w.url("/"), headers: []string{"Accept-Encoding", "br, gzip"}}.from(plain), func(s seen) bool { return s.Header.Get("Accept-Encoding") == "br, gzip" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := w.do(tt.in).seen(t)
			if !tt.check(s) {
				t.Errorf("the target saw %+v", s)
			}
			for _, name := range []string{"X-Use-Body-Templating", "X-Project-Id", "X-Environment"} {
				if s.Header[name] != nil {
					t.Errorf("the target saw %s", name)
				}
			}
		})
	}
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestRefusals(t *testing.T) {
	w := run(t, setup{open: true, environ: map[string]string{"MAX_TEMPLATED_BODY": "1000"}})
	on := []string{"X-Use-Body-Templating", "true", "Content-Type", "text/plain"}
	for _, tt := range []struct {
		name   string
		in     call
		status int
		code   string
	}{
		{"no url", call{query: "x"}, 400, "invalid_target"},
		{"empty url", call{query: "url="}, 400, "invalid_target"},
		{"url twice", call{query: "url=https%3A%2F%2Fallowed.test%2F&url=https%3A%2F%2Fallowed.test%2F"}, 400, "invalid_target"},
		{"another parameter", call{query: "url=https%3A%2F%2Fallowed.test%2F&x=1"}, 400, "invalid_target"},
		{"target not escaped", call{query: "url=https://allowed.test/?a=1&b=2"}, 400, "invalid_target"},
		{"bad escaping", call{query: "url=%zz"}, 400, "invalid_target"},
		{"not a URL", call{target: "allowed.test"}, 400, "invalid_target"},
		{"no project", call{target: w.url("/"), without: []string{"X-Project-Id"}}, 400, "invalid_parameter"},
		{"no environment", call{target: w.url("/"), without: []string{"X-Environment"}}, 400, "invalid_parameter"},
		{"project twice", call{target: w.url("/"), headers: []string{"X-Project-ID", project}}, 400, "invalid_parameter"},
		{"environment twice", call{target: w.url("/"), headers: []string{"X-Environment", "prod"}}, 400, "invalid_parameter"},
		{"empty project", call{target: w.url("/"), without: []string{"X-Project-Id"}, headers: []string{"X-Project-Id", ""}}, 400, "invalid_parameter"},
		{"another project", call{target: w.url("/"), without: []string{"X-Project-Id"}, headers: []string{"X-Project-ID", "pr_other"}}, 403, "origin_not_allowed"},
		{"another environment", call{target: w.url("/"), without: []string{"X-Environment"}, headers: []string{"X-Environment", "staging"}}, 403, "origin_not_allowed"},
		{"forged projects", call{target: w.url("/"), without: []string{"X-Project-Id"}, headers: []string{"X-Project-ID", "PR_DEMO"}}, 403, "origin_not_allowed"},
		{"a pattern for a project", call{target: w.url("/"), without: []string{"X-Project-Id"}, headers: []string{"X-Project-ID", ".*"}}, 403, "origin_not_allowed"},
		{"no origin", call{target: w.url("/"), without: []string{"Origin"}}, 403, "origin_not_allowed"},
		{"another origin", call{target: w.url("/")}.from("https://evil.tld"), 403, "origin_not_allowed"},
		{"another destination", call{target: "https://evil.tld/"}, 403, "destination_not_allowed"},
		{"another path", call{target: "https://api.lectern.test/"}, 403, "destination_not_allowed"},
		{"another port of an allowed domain", call{target: "https://allowed.test:8443/"}, 403, "destination_not_allowed"},
		{"http of an allowed domain", call{target: "http://allowed.test/"}, 403, "destination_not_allowed"},
		{"unknown credential", call{target: w.url("/"), headers: []string{"X-K", "{{cred_nobody}}"}}, 404, "credential_not_allowed"},
		{"known but not listed", call{target: w.url("/"), headers: []string{"X-K", "{{cred_unlisted}}"}}, 404, "credential_not_allowed"},
		{"of another project", call{target: w.url("/"), headers: []string{"X-K", "{{cred_foreign}}"}}, 404, "credential_not_allowed"},
		{"of another environment", call{target: w.url("/"), headers: []string{"X-K", "{{cred_staging}}"}}, 404, "credential_not_allowed"},
		{"unknown in Basic credentials", call{target: w.url("/"), headers: []string{"Authorization", "Basic " + base64Of("a:{{cred_nobody}}")}}, 404, "credential_not_allowed"},
		{"line break in Basic credentials", call{target: w.url("/"), headers: []string{"Authorization", "Basic " + base64Of("a:{{cred_crlf}}")}}, 404, "credential_not_allowed"},
		{"after the beginning of an escape in Basic credentials", call{target: w.url("/"), headers: []string{"Authorization", "Basic " + base64Of("a:%2{{cred_main}}")}}, 400, "invalid_parameter"},
		{"unknown in the path", call{target: w.url("/{{cred_nobody}}")}, 404, "credential_not_allowed"},
		{"unknown in the query", call{target: w.url("/?a={{cred_nobody}}")}, 404, "credential_not_allowed"},
		{"unknown in the body", call{method: "POST", target: w.url("/"), body: "{{cred_nobody}}", headers: on}, 404, "credential_not_allowed"},
		{"unknown beside a known one", call{target: w.url("/"), headers: []string{"X-K", "{{cred_main}}", "X-L", "{{cred_nobody}}"}}, 404, "credential_not_allowed"},
		{"narrowed, another path", call{target: w.url("/x"), headers: []string{"X-K", "{{cred_narrow}}"}}, 404, "credential_not_allowed"},
		{"narrowed, another place", call{target: w.url("/narrow/{{cred_narrow}}")}, 404, "credential_not_allowed"},
		{"narrowed, in the body", call{method: "POST", target: w.url("/narrow/x"), body: "{{cred_narrow}}", headers: on}, 404, "credential_not_allowed"},
		{"line break in a header", call{target: w.url("/"), headers: []string{"X-K", "{{cred_crlf}}"}}, 404, "credential_not_allowed"},
		{"too short to be scrubbed", call{target: w.url("/"), headers: []string{"X-K", "{{cred_short}}"}}, 404, "credential_not_allowed"},
		{"body too large", call{method: "POST", target: w.url("/"), body: strings.Repeat("x", 1001), headers: on}, 413, "payload_too_large"},
		{"body too large, chunked", call{method: "POST", target: w.url("/"), body: strings.Repeat("x", 1001), chunked: true, headers: on}, 413, "payload_too_large"},
		{"body too large with values", call{method: "POST", target: w.url("/"), body: strings.Repeat("{{cred_main}}", 76), headers: on}, 413, "payload_too_large"},
		{"no type", call{method: "POST", target: w.url("/"), body: "x", headers: []string{"X-Use-Body-Templating", "true"}}, 415, "unsupported_media_type"},
		{"two types", call{method: "POST", target: w.url("/"), body: "x", headers: append(slices.Clone(on), "Content-Type", "text/plain")}, 415, "unsupported_media_type"},
		{"compressed", call{method: "POST", target: w.url("/"), body: "x", headers: append(slices.Clone(on), "Content-Encoding", "gzip")}, 415, "unsupported_media_type"},
		{"upgrade", call{target: w.url("/"), headers: []string{"Connection", "Upgrade", "Upgrade", "websocket"}}, 501, "upgrade_not_supported"},
		{"no such path", call{path: "/other", target: w.url("/")}, 404, "route_not_found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := w.dialled()
			got := w.do(tt.in)
			if got.StatusCode != tt.status || got.code() != tt.code {
				t.Errorf("%d %s: %s; want %d %s", got.StatusCode, got.code(), got.body, tt.status, tt.code)
			}
			if n := w.dialled() - before; n != 0 {
				t.Errorf("something was dialled or looked up (%d)", n)
			}
			if got.Header.Get("X-Proxy-Worker-Success") != "false" || got.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers: %v", got.Header)
			}
		})
	}
}

func TestBodyAtItsLimit(t *testing.T) {
	w := run(t, setup{open: true, environ: map[string]string{"MAX_TEMPLATED_BODY": "1000"}})
	s := w.do(call{method: "POST", target: w.url("/"), body: strings.Repeat("x", 1000), headers: []string{"X-Use-Body-Templating", "true", "Content-Type", "text/plain"}}).seen(t)
	if s.Length != 1000 {
		t.Errorf("the target saw %d bytes", s.Length)
	}
	// Without templating there is no limit.
	s = w.do(call{method: "POST", target: w.url("/"), body: strings.Repeat("x", 100_000), chunked: true}).seen(t)
	if len(s.Body) != 100_000 {
		t.Errorf("the target saw %d bytes", len(s.Body))
	}
}

func TestAnswerHeaders(t *testing.T) {
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for _, name := range []string{"Set-Cookie", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Report-To", "NEL", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers", "X-Proxy-Worker-Success"} {
			h.Set(name, "of-the-target")
		}
		h.Set("Content-Security-Policy", "default-src 'self'")
		h.Set("Location", "http://169.254.169.254/latest/")
		h.Add("X-Multiple", "1")
		h.Add("X-Multiple", "2")
		h.Set("Cache-Control", "max-age=60")
		h.Set("Vary", "Accept")
		h["Content-Type"] = nil
		w.WriteHeader(http.StatusFound)
		_, _ = w.Write([]byte("<html>moved"))
	})})
	got := w.do(call{target: w.url("/")})
	if got.StatusCode != http.StatusFound || got.body != "<html>moved" {
		t.Errorf("%d %q", got.StatusCode, got.body)
	}
	want := map[string]string{
		"X-Proxy-Worker-Success": "[true]", "Content-Security-Policy": "[default-src 'self' sandbox]", "X-Content-Type-Options": "[nosniff]",
		"Location": "[http://169.254.169.254/latest/]", "X-Multiple": "[1 2]", "Cache-Control": "[max-age=60]", "Content-Type": "[]",
		"Access-Control-Allow-Origin": "[" + origin + "]", "Access-Control-Expose-Headers": "[*]", "Vary": "[Accept Origin]",
		"Set-Cookie": "[]", "Clear-Site-Data": "[]", "Strict-Transport-Security": "[]", "Alt-Svc": "[]", "Report-To": "[]", "Nel": "[]", "Access-Control-Allow-Credentials": "[]",
	}
	for name, v := range want {
		if fmt.Sprint(got.Header[name]) != v {
			t.Errorf("%s: %v, want %s", name, got.Header[name], v)
		}
	}
}

func TestCORS(t *testing.T) {
	w := run(t, setup{open: true})
	preflight := func(origin, target string, further ...string) answer {
		return w.do(call{method: "OPTIONS", target: target, without: []string{"X-Project-Id", "X-Environment", "Accept-Encoding"}, headers: append([]string{"Access-Control-Request-Method", "POST"}, further...)}.from(origin))
	}
	before := w.dialled()
	got := preflight(origin, w.url("/x"), "Access-Control-Request-Headers", "authorization,x-project-id,x-environment,x-use-body-templating")
	for name, v := range map[string]string{
		"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Methods": "POST", "Access-Control-Max-Age": "600",
		"Access-Control-Allow-Headers": "authorization,x-project-id,x-environment,x-use-body-templating", "Access-Control-Allow-Credentials": "", "X-Proxy-Worker-Success": "false",
	} {
		if got.Header.Get(name) != v {
			t.Errorf("preflight: %s is %q, want %q", name, got.Header.Get(name), v)
		}
	}
	if got.StatusCode != http.StatusNoContent || !slices.Contains(got.Header["Vary"], "Origin") {
		t.Errorf("preflight: %d %v", got.StatusCode, got.Header)
	}
	for name, refused := range map[string]answer{
		"origin_not_allowed":      preflight("https://evil.tld", w.url("/x")),
		"destination_not_allowed": preflight(origin, "https://evil.tld/"),
		"invalid_parameter":       preflight(origin, w.url("/x"), "Access-Control-Request-Headers", "a b"),
	} {
		if refused.code() != name || refused.Header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("preflight: %d %s %v, want %s", refused.StatusCode, refused.body, refused.Header, name)
		}
		if allowed := refused.Header.Get("Access-Control-Allow-Origin"); (allowed == "") != (name == "origin_not_allowed") {
			t.Errorf("preflight refused as %s allows the origin %q", name, allowed)
		}
	}
	if w.dialled() != before {
		t.Error("a preflight called the target")
	}
	if s := w.do(call{method: "OPTIONS", target: w.url("/x")}).seen(t); s.Method != "OPTIONS" {
		t.Errorf("other OPTIONS are forwarded: %+v", s)
	}
	refused := w.do(call{target: "https://evil.tld/"})
	if refused.Header.Get("Access-Control-Allow-Origin") != origin || refused.Header.Get("Vary") != "Origin" || refused.Header.Get("Access-Control-Expose-Headers") != "*" {
		t.Errorf("a refusal to an allowed origin: %v", refused.Header)
	}
	refused = w.do(call{target: w.url("/")}.from("https://evil.tld"))
	if refused.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a refusal to another origin: %v", refused.Header)
	}
	refused = w.do(call{target: w.url("/"), without: []string{"X-Project-Id"}})
	if refused.Header.Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("a refusal without a project, to an allowed origin: %v", refused.Header)
	}
}
