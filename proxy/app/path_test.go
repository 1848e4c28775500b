package app_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// pathAttacks are targets in a path, after "/to/". Each has the path and query that the target sees, or the status of a
// refusal. P stands for the target's port, HOST for its host and port.
var pathAttacks = [][2]string{
	// Client libraries send these.
	{"https/HOST/v1/x", "/v1/x"},
	{"https/HOST", "/"},
	{"https/HOST/", "/"},
	{"https/HOST/a/", "/a/"},
	{"https/HOST/a%2Fb", "/a%2Fb"},
	{"https/HOST/a?", "/a?"},
	{"https/HOST/a?b=c&b=%7b&;%zz", "/a?b=c&b=%7b&;%zz"},
	{"https/HOST/%7B%7B%20cred_main%20%7D%7D/x", "/" + canary + "/x"},
	{"https/HOST/bot%7b%7bcred_main%7d%7d/x", "/bot" + canary + "/x"},
	{"https/HOST/{{cred_main}}/a%2Fb", "/" + canary + "/a%2Fb"},
	{"https/HOST/?k=%7B%7B+cred_main+%7D%7D&l=%7B%7B%20cred_main%20%7D%7D", "/?k=" + canary + "&l=" + canary},

	// Scheme.
	{"HTTPS/HOST/x", "/x"},
	{"http/HOST/x", "403"},
	{"", "400"}, {"/", "400"}, {"https", "400"}, {"https/", "400"}, {"http", "400"}, {"//", "400"}, {"///HOST/x", "400"},
	{"https//HOST/x", "400"}, {"https:/HOST/x", "400"}, {"https://HOST/x", "400"}, {"https:%2F%2FHOST/x", "400"}, {"https%3A/HOST/x", "400"},
	{"https%2FHOST/x", "400"}, {"https%3A%2F%2FHOST%2Fx", "400"}, {"%68ttps/HOST/x", "400"}, {"https%20/HOST/x", "400"}, {"ttps/HOST/x", "400"},
	{"ftp/HOST/x", "400"}, {"file/etc/passwd", "400"}, {"file//etc/passwd", "400"}, {"gopher/HOST/x", "400"}, {"javascript/HOST/x", "400"}, {"data/text/x", "400"},
	{"ws/HOST/x", "400"}, {"unix/HOST/x", "400"}, {"to/https/HOST/x", "400"}, {"for/pr_demo/prod/to/https/HOST/x", "400"},
	{"{{cred_main}}/HOST/x", "400"}, {"%7B%7Bcred_main%7D%7D/HOST/x", "400"},

	// User info.
	{"https/user@HOST/x", "400"}, {"https/user:secret@HOST/x", "400"}, {"https/@HOST/x", "400"}, {"https/HOST@evil.tld/x", "400"},
	{"https/user%40HOST/x", "400"}, {"https/HOST%40evil.tld/x", "400"}, {"https/api.lectern.test%3AP@evil.tld/x", "400"}, {"https/HOST%2F@evil.tld/x", "400"},
	{"https/HOST/@evil.tld/x", "/@evil.tld/x"},

	// Port.
	{"https/api.lectern.test:0P/x", "/x"},
	{"https/HOST/:80/x", "/:80/x"},
	{"https/api.lectern.test/x", "403"}, {"https/api.lectern.test:/x", "403"}, {"https/api.lectern.test:22/x", "403"},
	{"https/api.lectern.test:0/x", "400"}, {"https/api.lectern.test:00/x", "400"}, {"https/api.lectern.test:65536/x", "400"}, {"https/api.lectern.test:99999999999999999999/x", "400"},
	{"https/api.lectern.test:-1/x", "400"}, {"https/api.lectern.test:+P/x", "400"}, {"https/api.lectern.test:0x1bb/x", "400"}, {"https/HOST:80/x", "400"},
	{"https/api.lectern.test:80:P/x", "400"}, {"https/HOST%20/x", "400"}, {"https/api.lectern.test:%34%34%33/x", "400"}, {"https/api.lectern.test%3AP/x", "400"},
	{"https/api.lectern.test:４４３/x", "400"}, {"https/api.lectern.test:%7B%7Bcred_main%7D%7D/x", "400"},

	// Host.
	{"https/API.Lectern.TEST:P/x", "/x"}, {"https/api.lectern.test.:P/x", "/x"},
	{"https/:P/x", "400"}, {"https/%20/x", "400"}, {"https/./x", "400"}, {"https/../x", "400"}, {"https/%2e%2e/x", "400"}, {"https/%2E/x", "400"}, {"https/.../x", "400"},
	{"https/api..lectern.test:P/x", "400"}, {"https/.HOST/x", "400"}, {"https/api.lectern.test..:P/x", "400"}, {"https/*/x", "400"}, {"https/*.lectern.test:P/x", "400"},
	{"https/api%2electern.test:P/x", "400"}, {"https/%61pi.lectern.test:P/x", "400"}, {"https/api.lectern.test%2f.evil.tld/x", "400"}, {"https/HOST%2f/x", "400"},
	{"https/HOST%5c/x", "400"}, {"https/HOST%00/x", "400"}, {"https/api.lectern.test%00.evil.tld/x", "400"}, {"https/HOST%0a/x", "400"}, {"https/HOST%0d%0aHost:evil/x", "400"},
	{"https/HOST%09/x", "400"}, {"https/HOST%23/x", "400"}, {"https/HOST%3Fx", "400"}, {"https/HOST;x/x", "400"}, {"https/HOST,evil.tld/x", "400"}, {"https/api.lectern.test%E3%80%82evil.tld/x", "400"},
	{"https/HOST\\.evil.tld/x", "400"}, {"https/evil.tld\\@HOST/x", "400"}, {"https\\HOST/x", "400"}, {"https/\\HOST/x", "400"}, {"https/HOST\\x", "400"},
	{"https/b%C3%BCcher.example/x", "400"}, {"https/bücher.example/x", "403"}, {"https/арi.lectern.test:P/x", "403"}, {"https/xn--pi-6kc.lectern.test:P/x", "403"},
	{"https/ａｐｉ．lectern．test:P/x", "/x"}, {"https/HOST／evil/x", "400"}, {"https/api.lectern.test＠evil.tld/x", "400"}, {"https/api\u200b.lectern.test:P/x", "/x"}, {"https/\u202eapi.lectern.test:P/x", "400"},
	{"https/api.lectern.test.evil.tld/x", "403"}, {"https/evilapi.lectern.test:P/x", "403"}, {"https/evil.tld/HOST/x", "403"}, {"https/evil.tld/https/HOST/x", "403"}, {"https/localhost/x", "403"},
	{"https/127.0.0.1:P/x", "403"}, {"https/169.254.169.254/latest/meta-data", "403"}, {"https/2130706433/x", "400"}, {"https/0177.0.0.1/x", "400"}, {"https/0x7f.0.0.1/x", "400"},
	{"https/127.1/x", "400"}, {"https/0x7f000001/x", "400"}, {"https/[::1]:P/x", "403"}, {"https/[::ffff:127.0.0.1]:P/x", "403"}, {"https/::1/x", "400"}, {"https/[::1/x", "400"},
	{"https/[::1]x/x", "400"}, {"https/[]/x", "400"}, {"https/[127.0.0.1]/x", "400"}, {"https/[fe80::1%25lo]/x", "400"}, {"https/%5B::1%5D:P/x", "400"},
	{"https/{{cred_main}}/x", "400"}, {"https/%7B%7B%20cred_main%20%7D%7D/x", "400"}, {"https/%7B%7Bcred_main%7D%7D.evil.tld/x", "400"}, {"https/HOST%7B%7Bcred_main%7D%7D/x", "400"},
	{"https/" + strings.Repeat("a", 64) + ".test/x", "400"}, {"https/" + strings.Repeat("a.", 200) + "test/x", "400"},

	// Slashes and dot segments.
	{"https/HOST/.../..a/.b", "/.../..a/.b"}, {"https/HOST/a%5Cb", "/a%5Cb"}, {"https/HOST/a%252Fb", "/a%252Fb"},
	{"https/HOST//", "400"}, {"https/HOST//x", "400"}, {"https/HOST/a//b", "400"}, {"https/HOST/a///b", "400"}, {"https/HOST/a//", "400"}, {"https/HOST/https://evil.tld/", "400"},
	{"https/HOST/../x", "400"}, {"https/HOST/./x", "400"}, {"https/HOST/a/.", "400"}, {"https/HOST/a/..", "400"}, {"https/HOST/a/../../../evil.tld/x", "400"}, {"https/HOST/..", "400"},
	{"https/HOST/%2e%2e/x", "400"}, {"https/HOST/%2E%2e/x", "400"}, {"https/HOST/.%2e/x", "400"}, {"https/HOST/%2e./x", "400"}, {"https/HOST/%2e/x", "400"}, {"https/HOST/a/%2e%2e", "400"},
	{"https/HOST/a%2f..%2fb", "400"}, {"https/HOST/a%2F%2e%2e%2Fb", "400"}, {"https/HOST/..%2fx", "400"}, {"https/HOST/%2f..", "400"}, {"https/HOST/a%5c..%5cb", "400"}, {"https/HOST/..%5cx", "400"},
	{"https/HOST/..;/x", "400"}, {"https/HOST/..;a=b/x", "400"}, {"https/HOST/.;a/x", "400"}, {"https/HOST/%2e%2e;/x", "400"}, {"https/HOST/..%3b/x", "400"}, {"https/HOST/..%20/x", "400"}, {"https/HOST/..%09/x", "400"},
	{"https/HOST/%252e%252e/x", "400"}, {"https/HOST/%25252e%25252e/x", "400"}, {"https/HOST/%25252525252e/x", "400"}, {"https/HOST/%2%65%2%65/x", "400"},
	{"https/HOST/%c0%ae%c0%ae/x", "400"}, {"https/HOST/%e0%80%ae%e0%80%ae/x", "400"}, {"https/HOST/..%c0%afx", "400"}, {"https/HOST/%c0%ae./x", "400"}, {"https/HOST/%25c0%25ae%25c0%25ae/x", "400"}, {"https/HOST/..／x", "400"},
	{"https/HOST\\..\\x", "400"}, {"https/HOST/a\\b", "400"}, {"https/HOST/a\\..\\b", "400"},
	{"https/HOST/%7B%7Bcred_main%7D%7D/../x", "400"}, {"https/HOST/%7B%7Bcred_dots%7D%7D/x", "404"},

	// Bytes.
	{"https/HOST/ä", "/%C3%A4"}, {"https/HOST/%C3%A4", "/%C3%A4"}, {"https/HOST/%41%2d%7e", "/A-~"}, {"https/HOST/a%0D%0AHost:%20evil.tld", "/a%0D%0AHost:%20evil.tld"},
	{"https/HOST/a%3Fb%23c", "/a%3Fb%23c"}, {"https/HOST/\"<>`^|", "/%22%3C%3E%60%5E%7C"}, {"https/HOST/a%ffb", "/a%FFb"}, {"https/HOST/a?x=ä", "/a?x=%C3%A4"}, {"https/HOST/a?../..//\\", "/a?../..//\\"},
	{"https/HOST/%00", "400"}, {"https/HOST/a%00b", "400"}, {"https/HOST/a\x00b", "400"}, {"https/HOST/a\x7fb", "400"}, {"https/HOST/a\tb", "400"}, {"https/HOST/a b", "400"}, {"https/HOST/a\xffb", "400"},
	{"https/HOST/%", "400"}, {"https/HOST/%2", "400"}, {"https/HOST/%zz", "400"}, {"https/HOST/%u002e", "400"}, {"https/HOST/#", "400"}, {"https/HOST/a#b", "400"}, {"https/HOST#@evil.tld/", "400"}, {"https/HOST/?a#b", "400"},
	{"https/HOST/" + strings.Repeat("a", 17<<10), "400"}, {"https/HOST/?" + strings.Repeat("a", 17<<10), "400"},

	// Placeholders.
	{"https/HOST/%7B%7BCRED_main%7D%7D", "/%7B%7BCRED_main%7D%7D"}, {"https/HOST/%257B%257Bcred_main%257D%257D", "/%257B%257Bcred_main%257D%257D"}, {"https/HOST/%7B%20%7Bcred_main%7D%7D", "/%7B%20%7Bcred_main%7D%7D"},
	{"https/HOST/%7B%7B cred_main%7D%7D", "400"}, {"https/HOST/%7B%7Bcred_nobody%7D%7D", "404"}, {"https/HOST/?a=%7B%7B+cred_unlisted+%7D%7D", "404"}, {"https/HOST/%7B%7Bcred_narrow%7D%7D", "404"},
	{"https/HOST/?a=%2%7B%7Bcred_main%7D%7D", "400"}, {"https/HOST/?a=%%7B%7Bcred_main%7D%7D", "400"}, {"https/HOST/%2%7B%7Bcred_main%7D%7D", "400"}, {"https/HOST/?a=\\%7B%7Bcred_main%7D%7D", "400"},
}

// TestPathAttacks sends each attack in all spellings of the form. Nothing is dialled for a refused one.
func TestPathAttacks(t *testing.T) {
	w := run(t, setup{open: true})
	const scope = "X-Project-ID: " + project + "\r\nX-Environment: prod\r\n"
	ask := func(path, headers, want string) {
		path = strings.ReplaceAll(path, "HOST", "api.lectern.test:P")
		path = strings.ReplaceAll(path, "P/", w.target.port+"/")
		path = strings.NewReplacer(":P", ":"+w.target.port, ":+P", ":+"+w.target.port, ":0P", ":0"+w.target.port, "%3AP", "%3A"+w.target.port).Replace(path)
		before := w.dialled()
		got := w.raw("GET "+path+" HTTP/1.1\r\nHost: a\r\nOrigin: "+origin+"\r\n"+headers+"\r\n", 1)
		switch {
		case len(got) != 1:
			t.Errorf("%q: no answer", path)
		case strings.HasPrefix(want, "/"):
			if s := got[0].seen(t); s.URI != want || s.Host != "api.lectern.test:"+w.target.port {
				t.Errorf("%q: the target saw %s%s, want %s", path, s.Host, s.URI, want)
			}
		case strconv.Itoa(got[0].StatusCode) != want:
			t.Errorf("%q: %d %s, want %s", path, got[0].StatusCode, got[0].body, want)
		case w.dialled() != before:
			t.Errorf("%q: something was dialled or looked up", path)
		}
	}
	for _, form := range [][2]string{
		{"/proxy/to/", scope}, {"/to/", scope}, {"/proxy/for/" + project + "/prod/to/", ""}, {"/for/" + project + "/prod/to/", ""},
	} {
		for _, a := range pathAttacks {
			ask(form[0]+a[0], form[1], a[1])
		}
	}
	for _, a := range [][3]string{
		{"/proxy/for/pr%5Fdemo/prod/to/https/HOST/x", "", "/x"},
		{"/proxy/for/pr_other/prod/to/https/HOST/x", "", "403"}, {"/proxy/for/PR_DEMO/prod/to/https/HOST/x", "", "403"}, {"/proxy/for/%7B%7Bcred_main%7D%7D/prod/to/https/HOST/x", "", "403"},
		{"/proxy/for/pr_demo/pro/to/https/HOST/x", "", "403"}, {"/proxy/for/pr_demo%2Fprod/x/to/https/HOST/x", "", "400"}, {"/proxy/for/pr_demo/a%2Fprod/to/https/HOST/x", "", "400"},
		{"/proxy/for/a%5Cb/prod/to/https/HOST/x", "", "400"}, {"/proxy/for/a\\b/prod/to/https/HOST/x", "", "400"}, {"/proxy/for/%00/prod/to/https/HOST/x", "", "400"}, {"/proxy/for/%ff/prod/to/https/HOST/x", "", "400"},
		{"/proxy/for/../prod/to/https/HOST/x", "", "400"}, {"/proxy/for/pr_demo/%2e/to/https/HOST/x", "", "400"}, {"/proxy/for/" + strings.Repeat("p", 257) + "/prod/to/https/HOST/x", "", "400"},
		{"/proxy/for/pr_demo/prod/to", "", "404"}, {"/proxy/for//prod/to/https/HOST/x", "", "404"}, {"/proxy/for/pr_demo//to/https/HOST/x", "", "404"}, {"/proxy/for/pr_demo/to/https/HOST/x", "", "404"},
		{"/proxy/for/pr_demo/prod/x/to/https/HOST/x", "", "404"}, {"/proxy/to", scope, "404"}, {"/proxy//to/https/HOST/x", scope, "404"}, {"//proxy/to/https/HOST/x", scope, "404"}, {"/Proxy/to/https/HOST/x", scope, "404"},
		{"/proxy/TO/https/HOST/x", scope, "404"}, {"/x/../proxy/to/https/HOST/x", scope, "404"}, {"/proxy%2Fto/https/HOST/x", scope, "404"}, {"/proxy%2Fto/https/HOST/{", scope, "400"}, {"/proxy/%74o/https/HOST/x", scope, "404"},
		{"/proxy/to/https/HOST/x", "", "400"}, {"/proxy/to/https/HOST/x", "X-Project-ID: " + project + "\r\n", "400"}, {"/proxy/to/https/HOST/x", scope + scope, "400"},
		{"/proxy/for/pr_demo/prod/to/https/HOST/x", scope, "400"}, {"/proxy/for/pr_demo/prod/to/https/HOST/x", "X-Project-ID: pr_other\r\n", "400"}, {"/proxy/for/pr_demo/prod/to/https/HOST/x", "X-Environment:\r\n", "400"},
	} {
		ask(a[0], a[1], a[2])
	}
	if strings.Contains(w.log.String(), `"level":"ERROR"`) {
		t.Errorf("a client's fault is logged as one of ours: %s", w.log)
	}
}

// TestPathForm checks what the base-URL form shares with the other: the method, the body, the audit record and CORS.
func TestPathForm(t *testing.T) {
	w := run(t, setup{open: true, manifests: func(w *world) string {
		return standard(w) + endpoint(w, "other", m{"projectId": "pr_other", "origins": []m{{"domain": "example.org"}}, "credentials": nil})
	}})
	to := "/https/api.lectern.test:" + w.target.port + "/v1/x"
	ask := func(method, path, origin string, headers ...string) answer {
		t.Helper()
		r, err := http.NewRequest(method, w.base+path, strings.NewReader("a body"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return read(t, resp)
	}
	got := ask("PROPFIND", "/proxy/for/pr_demo/prod/to"+to+"?q=1", origin, "Authorization", "Bearer {{cred_main}}")
	if s := got.seen(t); s.Method != "PROPFIND" || s.URI != "/v1/x?q=1" || s.Body != "a body" || s.Header.Get("Authorization") != "Bearer "+canary || got.Header.Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("the target saw %+v; the answer has %v", s, got.Header)
	}
	eventually.True(t, "the record", func() bool { return len(w.audits()) == 1 })
	if a := w.audits()[0]; a["project"] != project || a["environment"] != "prod" || a["endpoint"] != "web" || a["destination"] != "api.lectern.test:"+w.target.port || fmt.Sprint(a["credentials"]) != "[cred_main]" {
		t.Errorf("audited as %v", a)
	}
	// A preflight that names a project is judged for it. One that names none is granted for any.
	preflight := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization"}
	for _, tt := range []struct {
		path, origin string
		status       int
	}{
		{"/proxy/for/pr_demo/prod/to" + to, origin, 204},
		{"/proxy/for/pr_demo/prod/to" + to, "https://example.org", 403},
		{"/proxy/for/pr_other/prod/to" + to, "https://example.org", 204},
		{"/proxy/for/pr_demo/staging/to" + to, origin, 403},
		{"/proxy/for/pr_demo/prod/to/https/evil.tld/", origin, 403},
		{"/proxy/for/pr_demo/prod/to/https/api.lectern.test:1" + "/", origin, 403},
		{"/proxy/to" + to, origin, 204},
		{"/proxy/to" + to, "https://example.org", 204},
		{"/proxy/to" + to, "https://example.net", 403},
	} {
		got := ask(http.MethodOptions, tt.path, tt.origin, preflight...)
		if got.StatusCode != tt.status || tt.status == 204 && got.Header.Get("Access-Control-Allow-Headers") != "authorization" {
			t.Errorf("%s from %s: %d %v %s", tt.path, tt.origin, got.StatusCode, got.Header, got.body)
		}
	}
	// A page may read the refusal of an endpoint that allows it.
	if got := ask("GET", "/proxy/for/pr_demo/prod/to/https/evil.tld/", origin); got.code() != "destination_not_allowed" || got.Header.Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
}
