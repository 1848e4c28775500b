package app_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"html"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/lectern-dev/lectern/services/console/app"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
)

// running is a console that runs until its test ends.
type running struct {
	url  string
	log  *logtest.Buffer
	stop func()
}

func start(t *testing.T, environ map[string]string) running {
	t.Helper()
	environ["LISTEN_PUBLIC"], environ["LISTEN_INTERNAL"], environ["DRAIN_DELAY"] = "127.0.0.1:0", "127.0.0.1:0", "0s"
	var cfg app.Config
	if err := config.Load(&cfg, environ); err != nil {
		t.Fatal(err)
	}
	log := &logtest.Buffer{}
	cfg.LogOutput = log
	ready := make(chan string, 1)
	cfg.HTTP.Ready = func(public, _ net.Addr) { ready <- "http://" + public.String() }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx, cfg) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	select {
	case url := <-ready:
		return running{url, log, stop}
	case err := <-ended:
		ended <- err
		t.Fatal("it did not start")
		return running{}
	}
}

// ask sends one request and follows no redirect.
func (r running) ask(t *testing.T, method, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// assets returns the paths of the icon, the script and the style in the page.
func assets(t *testing.T, page string) []string {
	t.Helper()
	paths := regexp.MustCompile(`/console/assets/[0-9a-f]{16}/[^"]+\.(svg|js|css)`).FindAllString(page, -1)
	if len(paths) != 3 {
		t.Fatalf("the page names the assets %q:\n%s", paths, page)
	}
	return paths
}

// TestHeaders checks the headers of every kind of answer. They let a browser load and run only the console's own files,
// and let no page frame them.
func TestHeaders(t *testing.T) {
	r := start(t, map[string]string{"CORS_ALLOWED_ORIGINS": "*"})
	safe := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
			"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
			"require-trusted-types-for 'script'; trusted-types 'none'",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy": "accelerometer=(), autoplay=(), browsing-topics=(), camera=(), display-capture=(), encrypted-media=(), " +
			"fullscreen=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), microphone=(), midi=(), payment=(), " +
			"picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()",
		"Referrer-Policy":        "no-referrer",
		"Vary":                   "Accept-Encoding",
		"X-Content-Type-Options": "nosniff",
		"X-Frame-Options":        "DENY",
	}
	_, page := r.ask(t, "GET", "/console/")
	const kept = "public, max-age=31536000, immutable"
	for _, tt := range []struct {
		method, path string
		status       int
		own          map[string]string
	}{
		{"GET", "/console/", 200, map[string]string{"Cache-Control": "no-cache", "Content-Type": "text/html; charset=utf-8"}},
		{"HEAD", "/console/entries/ent_1", 200, map[string]string{"Cache-Control": "no-cache", "Content-Type": "text/html; charset=utf-8"}},
		{"GET", assets(t, page)[0], 200, map[string]string{"Cache-Control": kept}},
		{"GET", "/console", 308, map[string]string{"Cache-Control": "private, no-cache", "Location": "/console/"}},
		{"GET", "/console/assets/0123456789abcdef/index.js", 404, map[string]string{"Cache-Control": "no-store", "Content-Type": "application/json"}},
		{"POST", "/console/", 405, map[string]string{"Cache-Control": "no-store", "Allow": "GET, HEAD"}},
		{"GET", "/", 404, map[string]string{"Cache-Control": "no-store"}},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			resp, _ := r.ask(t, tt.method, tt.path, "Origin", "https://example.com", "Accept-Encoding", "gzip")
			got, want := map[string]string{}, map[string]string{}
			for name, value := range safe {
				want[name] = value
			}
			for name, value := range tt.own {
				want[name] = value
			}
			for name := range want {
				got[name] = strings.Join(resp.Header.Values(name), " | ")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if resp.StatusCode != tt.status {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.status)
			}
			for _, name := range []string{"Set-Cookie", "Access-Control-Allow-Origin"} {
				if resp.Header[name] != nil {
					t.Errorf("%s: %q", name, resp.Header[name])
				}
			}
		})
	}
}

// TestPageIsAtEveryAddress checks that each address of the application below /console/ can be opened and reloaded.
func TestPageIsAtEveryAddress(t *testing.T) {
	r := start(t, map[string]string{})
	_, page := r.ask(t, "GET", "/console/")
	for _, path := range []string{
		"/console/entries", "/console/entries/a%2Fb", "/console/entries/x.y.js", "/console/entries/..", "/console//", "/console/%61ssets/x",
		"/console/entries?updated_after=2026-01-01&updated_after=x;y",
	} {
		if resp, body := r.ask(t, "GET", path); resp.StatusCode != 200 || body != page {
			t.Errorf("%s: %d %.100s", path, resp.StatusCode, body)
		}
	}
	for _, path := range []string{"/console/assets/", "/console/assets/index.js", "/console/assets/0123456789abcdef/index.js", "/console/assets/../index.html", "/consoles", "/projects/pr_1"} {
		var refusal struct{ Error struct{ Code string } }
		resp, body := r.ask(t, "GET", path)
		if err := json.Unmarshal([]byte(body), &refusal); resp.StatusCode != 404 || err != nil || refusal.Error.Code != "route_not_found" {
			t.Errorf("%s: %d %.100s", path, resp.StatusCode, body)
		}
	}
}

// TestFilesTravelOnceAndSmall checks that browsers get the files compressed, and get 304 for a file that they have.
func TestFilesTravelOnceAndSmall(t *testing.T) {
	r := start(t, map[string]string{})
	_, page := r.ask(t, "GET", "/console/")
	compressed := false
	for _, path := range append(assets(t, page), "/console/") {
		plain, want := r.ask(t, "GET", path)
		for coding, open := range map[string]func(io.Reader) (io.Reader, error){
			"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
			"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
		} {
			resp, body := r.ask(t, "GET", path, "Accept-Encoding", coding)
			if len(want) < 1024 && resp.Header.Get("Content-Encoding") == "" {
				continue // too small for compression
			}
			compressed = true
			unpacked, err := open(strings.NewReader(body))
			if err != nil {
				t.Fatalf("%s as %s: %v", path, coding, err)
			}
			got, err := io.ReadAll(unpacked)
			if err != nil || string(got) != want || len(body) >= len(want) || resp.Header.Get("Content-Encoding") != coding {
				t.Errorf("%s as %s: %d bytes of %d, %q, %v", path, coding, len(body), len(want), resp.Header.Get("Content-Encoding"), err)
			}
		}
		resp, body := r.ask(t, "GET", path, "If-None-Match", plain.Header.Get("Etag"), "Accept-Encoding", "gzip")
		if resp.StatusCode != http.StatusNotModified || body != "" {
			t.Errorf("%s, which the client has: %d with %d bytes", path, resp.StatusCode, len(body))
		}
	}
	if !compressed {
		t.Error("no file is large enough to be compressed")
	}
}

// TestLogHasNoAddress checks that the log has only the route, because addresses of the console may contain identifiers
// and filters of a project.
func TestLogHasNoAddress(t *testing.T) {
	r := start(t, map[string]string{"LOG_LEVEL": "debug"})
	r.ask(t, "GET", "/console/entries/ent_hidden?contact_id=co_hidden", "Referer", "https://example.com/hidden")
	r.stop() // the service logs a request after its answer
	log := r.log.String()
	if !strings.Contains(log, "/console/{path...}") || strings.Contains(log, "hidden") {
		t.Errorf("the log:\n%s", log)
	}
}

// TestSignIn checks that the page of a console with an OpenID provider has the settings and may connect to the provider.
// Without a provider, the page is the file as it was built, with the addresses of its assets.
func TestSignIn(t *testing.T) {
	built, err := os.ReadFile("../internal/site/dist/index.html")
	if err != nil {
		t.Fatal(err)
	}
	_, plain := start(t, map[string]string{}).ask(t, "GET", "/console/")
	if want := strings.ReplaceAll(string(built), "./assets", path.Dir(assets(t, plain)[0])); plain != want {
		t.Errorf("without a provider, the page is\n%s", plain)
	}
	r := start(t, map[string]string{
		"CONSOLE_ISSUER": "https://login.example.com/realms/a", "CONSOLE_CLIENT_ID": `con"sole`, "CONSOLE_SCOPES": "openid offline_access",
		"CONSOLE_AUDIENCE": "lectern", "CONSOLE_ISSUER_ORIGINS": "https://oauth.example.net, https://other.example.net:8443",
	})
	resp, page := r.ask(t, "GET", "/console/")
	if want := "; connect-src 'self' https://login.example.com https://oauth.example.net https://other.example.net:8443; "; !strings.Contains(resp.Header.Get("Content-Security-Policy"), want) {
		t.Errorf("the policy %q lacks %q", resp.Header.Get("Content-Security-Policy"), want)
	}
	head, content, _ := strings.Cut(page, `  <meta name="lectern-sign-in" content="`)
	content, tail, _ := strings.Cut(content, "\" />\n  ")
	if head+tail != plain {
		t.Errorf("beside the settings, the page is\n%s", head+tail)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(html.UnescapeString(content)), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"issuer": "https://login.example.com/realms/a", "clientId": `con"sole`, "scopes": "openid offline_access", "asked": "lectern", "audience": "lectern",
		"origins": []any{"https://login.example.com", "https://oauth.example.net", "https://other.example.net:8443"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the settings (-want +got):\n%s", diff)
	}
}

// TestSettingsRefused checks that each wrong setting of the sign-in is named, all of them at once.
func TestSettingsRefused(t *testing.T) {
	for _, tt := range []struct {
		name    string
		environ map[string]string
		want    []string // a part of the sentence of each fault
	}{
		{"no issuer", map[string]string{"CONSOLE_CLIENT_ID": "a", "CONSOLE_AUDIENCE": "b", "CONSOLE_ISSUER_ORIGINS": "https://a.example"}, []string{
			"CONSOLE_CLIENT_ID is set without CONSOLE_ISSUER", "CONSOLE_AUDIENCE is set", "CONSOLE_ISSUER_ORIGINS is set",
		}},
		{"all wrong", map[string]string{"CONSOLE_ISSUER": "http://login.example.com", "CONSOLE_SCOPES": "profile", "CONSOLE_ISSUER_ORIGINS": "https://a.example/,https://*.example"}, []string{
			`CONSOLE_ISSUER is "http://login.example.com"`, "CONSOLE_CLIENT_ID is not set", `CONSOLE_SCOPES is "profile"`,
			`CONSOLE_ISSUER_ORIGINS is "https://a.example/"`,
		}},
		{"a policy within", map[string]string{"CONSOLE_ISSUER": "https://a.example;script-src", "CONSOLE_CLIENT_ID": "a"}, []string{"CONSOLE_ISSUER is"}},
		{"a query", map[string]string{"CONSOLE_ISSUER": "https://a.example/?b=c", "CONSOLE_CLIENT_ID": "a"}, []string{"CONSOLE_ISSUER is"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var cfg app.Config
			err := config.Load(&cfg, tt.environ)
			if err == nil {
				t.Fatal("no fault")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %s", err, want)
				}
			}
		})
	}
}
