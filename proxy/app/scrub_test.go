package app_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/lectern-dev/lectern/proxy/manifest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
)

// reveals reports whether text contains the canary, in any encoding that this test can decode.
func reveals(text string) bool {
	seen := text
	if decoded, err := url.QueryUnescape(text); err == nil {
		seen += decoded
	}
	var unquoted string
	if json.Unmarshal([]byte(`"`+strings.Trim(text, `"`)+`"`), &unquoted) == nil {
		seen += unquoted
	}
	for header := range strings.SplitSeq(text, "-") {
		decoded, _ := hex.DecodeString(header)
		seen += string(decoded)
	}
	for _, part := range strings.FieldsFunc(strings.NewReplacer("-", "+", "_", "/", "\r\n", "").Replace(text), func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", r)
	}) {
		for cut := range 4 {
			if cut < len(part) {
				decoded, _ := base64.RawStdEncoding.DecodeString(part[cut : cut+(len(part)-cut)/4*4])
				seen += string(decoded)
			}
		}
	}
	return strings.Contains(strings.ToLower(seen), strings.ToLower(canary))
}

func percent(text string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, "%%%02x", text[i])
	}
	return b.String()
}

func TestEchoedSecretsAreScrubbed(t *testing.T) {
	echoes := map[string]http.HandlerFunc{
		"body": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<"+canary+">") },
		"body with a length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(canary)))
			_, _ = io.WriteString(w, canary)
		},
		"error page": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "bad key "+canary, http.StatusUnauthorized)
		},
		"chunk border": func(w http.ResponseWriter, _ *http.Request) {
			for i := range len(canary) {
				_, _ = io.WriteString(w, canary[i:i+1])
				_ = http.NewResponseController(w).Flush()
			}
		},
		"header":           func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Echo", "Bearer "+canary) },
		"header, twice":    func(w http.ResponseWriter, _ *http.Request) { w.Header()["X-Echo"] = []string{"a", canary + canary} },
		"name of a header": func(w http.ResponseWriter, _ *http.Request) { w.Header()["X-"+canary] = []string{"v"} },
		"name of a header, in hex": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["X-"+strings.ToUpper(hex.EncodeToString([]byte(canary)))] = []string{"v"}
		},
		"location": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://x.test/?k="+url.QueryEscape(canary))
			w.WriteHeader(http.StatusSeeOther)
		},
		"basic": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Echo", "Basic "+base64.StdEncoding.EncodeToString([]byte("user:"+canary)))
		},
		"gzip": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			g := gzip.NewWriter(w)
			_, _ = io.WriteString(g, strings.Repeat("x", 5000)+canary)
			_ = g.Close()
		},
		"zstd": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "zstd")
			z, _ := zstd.NewWriter(w)
			_, _ = io.WriteString(z, strings.Repeat("x", 5000)+canary)
			_ = z.Close()
		},
		"trailer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Echo")
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-Echo", canary)
		},
		"name of a trailer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-"+canary)
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-"+canary, "v")
		},
		"header, folded": func(w http.ResponseWriter, _ *http.Request) {
			// net/http joins the lines of a folded header by a space.
			w.Header().Set("X-Echo", canary[:10]+" "+canary[10:])
		},
		"base64 in a header, folded": func(w http.ResponseWriter, _ *http.Request) {
			text := base64.StdEncoding.EncodeToString([]byte("Bearer " + canary))
			w.Header().Set("X-Echo", text[:12]+" "+text[12:24]+" "+text[24:])
		},
		"base64 in a trailer, folded": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Echo")
			_, _ = io.WriteString(w, "body")
			text := base64.StdEncoding.EncodeToString([]byte("Bearer " + canary))
			w.Header().Set("X-Echo", text[:12]+" "+text[12:])
		},
		"early hints": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "<https://x.test/"+canary+">")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			_, _ = io.WriteString(w, "body")
		},
		"encoding that cannot be read": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, canary)
		},
		"two encodings": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Encoding"] = []string{"gzip", "gzip"}
			_, _ = io.WriteString(w, canary)
		},
		"wrong encoding": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, canary)
		},
	}
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/"))
		echoes[name](w, r)
	})})
	for name := range echoes {
		t.Run(name, func(t *testing.T) {
			resp, err := w.client.Do(w.request(call{target: w.url("/" + url.PathEscape(name)), headers: []string{"Authorization", "Bearer {{cred_main}}"}}))
			if err != nil && name == "wrong encoding" {
				return // the connection ended without an answer
			}
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil && name != "wrong encoding" {
				t.Fatal(err)
			}
			all := string(body) + "\n" + fmt.Sprint(resp.Header) + "\n" + fmt.Sprint(resp.Trailer)
			if reveals(string(body)) || strings.Contains(strings.ToLower(all), strings.ToLower(canary)) {
				t.Errorf("the canary came back: %s", all)
			}
			for header, values := range resp.Header {
				for _, v := range values {
					if reveals(v) || reveals(header) {
						t.Errorf("the canary came back in %s: %s", header, v)
					}
				}
			}
			switch name {
			case "name of a header", "name of a header, in hex", "name of a trailer", "early hints", "wrong encoding":
			case "encoding that cannot be read", "two encodings":
				if (answer{resp, string(body)}).code() != "upstream_unreachable" {
					t.Errorf("%d %s", resp.StatusCode, body)
				}
			default:
				if !strings.Contains(all, "[redacted]") {
					t.Errorf("nothing tells that something was taken out: %s", all)
				}
			}
		})
	}
}

func TestScrubbingCanBeOff(t *testing.T) {
	echoes := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("X-K"))
		if r.URL.Path == "/br" {
			w.Header().Set("Content-Encoding", "br")
		}
		_, _ = io.WriteString(w, r.Header.Get("X-K")+r.Header.Get("Range"))
	})
	w := run(t, setup{open: true, handler: echoes, manifests: func(w *world) string {
		return endpoint(w, "off", m{"scrub": m{"disabled": true}}) +
			endpoint(w, "pass", m{"origins": []m{{"domain": "example.net"}}, "scrub": m{"passUnreadable": true}})
	}})
	got := w.do(call{target: w.url("/"), headers: []string{"X-K", "{{cred_main}}", "Range", "bytes=1-"}})
	if got.body != canary+"bytes=1-" || got.Header.Get("X-Echo") != canary {
		t.Errorf("%q %v", got.body, got.Header)
	}
	if got := w.do(call{target: w.url("/"), headers: []string{"X-K", "{{cred_short}}"}}); got.body != short {
		t.Errorf("a short value: %d %q", got.StatusCode, got.body)
	}
	got = w.do(call{target: w.url("/br"), headers: []string{"X-K", "{{cred_main}}"}}.from("https://example.net"))
	if got.body != canary || got.Header.Get("X-Echo") != "[redacted]" || got.Header.Get("Content-Encoding") != "br" {
		t.Errorf("%q %v", got.body, got.Header)
	}
}

// TestEndpointsWithoutCredentialsPassAnswers lets a target answer with a value that the endpoint may not use.
func TestEndpointsWithoutCredentialsPassAnswers(t *testing.T) {
	w := run(t, setup{open: true, manifests: passThrough, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, canary)
	})})
	if got := w.do(call{target: w.url("/")}); got.body != canary || got.Header.Get("Content-Encoding") != "br" || got.Header.Get("Content-Length") == "" {
		t.Errorf("an answer to an endpoint without credentials: %q %v", got.body, got.Header)
	}
}

// TestCanaryIsNowhere searches all output of the proxy for the values: log, metrics, traces, profiles, health.
func TestCanaryIsNowhere(t *testing.T) {
	spans := &logtest.Buffer{} // the data for the collector
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(spans, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL) // the SDK reads the process's environment
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	w := run(t, setup{open: true, environ: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic(http.ErrAbortHandler)
		case "/garbage":
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 "+r.Header.Get("X-K")+"\r\n"+r.Header.Get("X-K")+"\r\n\r\n")
				_ = conn.Close()
			}
			return
		}
		_, _ = io.WriteString(w, r.Header.Get("X-K")+r.URL.RawQuery)
	})})
	on := []string{"X-Use-Body-Templating", "true", "Content-Type", "text/plain"}
	for _, c := range []call{
		{target: w.url("/?secret-query={{cred_main}}"), headers: []string{"X-K", "{{cred_main}}"}},
		{method: "POST", target: w.url("/x"), body: "{{cred_main}}", headers: on},
		{target: w.url("/panic"), headers: []string{"X-K", "{{cred_main}}"}},
		{target: w.url("/garbage"), headers: []string{"X-K", "{{cred_main}}"}},
		{target: w.url("/{{cred_main}}{{cred_dots}}"), headers: []string{"X-K", "{{cred_main}}"}},
		{target: w.url("/"), headers: []string{"X-K", "{{cred_main}} {{cred_crlf}}"}},
		{target: "https://nowhere.lectern.test/{{cred_main}}"},
	} {
		resp, err := w.client.Do(w.request(c))
		if err != nil {
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if strings.Contains(string(body), canary) {
			t.Errorf("an answer shows it: %s", body)
		}
	}
	w.write("broken.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {value: "+canary+"}\n")
	eventually.True(t, "a refusal of the manifest", func() bool { return strings.Contains(w.log.String(), "manifests refused") })
	var outputs bytes.Buffer
	for _, path := range []string{"/metrics", "/readyz", "/healthz", "/debug/pprof/", "/debug/pprof/goroutine?debug=2", "/debug/pprof/cmdline", "/debug/pprof/allocs?debug=1"} {
		resp, err := w.client.Get(w.internal + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(&outputs, resp.Body)
		_ = resp.Body.Close()
	}
	eventually.True(t, "the records", func() bool { return len(w.audits()) >= 7 })
	outputs.WriteString(w.log.String())
	eventually.True(t, "the spans", func() bool { return strings.Count(spans.String(), "proxy target") >= 4 })
	outputs.WriteString(spans.String())
	for _, value := range []string{canary, crlf[:10], percent(canary), base64.StdEncoding.EncodeToString([]byte(canary))[:20]} {
		if strings.Contains(outputs.String(), value) {
			t.Errorf("%q is in the output of the proxy", value)
		}
	}
	if strings.Contains(outputs.String(), "secret-query") {
		t.Error("a query string is in the output of the proxy")
	}
	found := false
	for _, a := range w.audits() {
		if a["decision"] == "allowed" && fmt.Sprint(a["credentials"]) == "[cred_main]" && a["endpoint"] == "web" && a["destination"] == "api.lectern.test:"+w.target.port && a["origin"] == origin && a["project"] == project {
			found = true
		}
	}
	if !found {
		t.Errorf("no record tells of the first request: %v", w.audits())
	}
}

func TestPolicyChangesTakeEffect(t *testing.T) {
	w := run(t, setup{open: true})
	w.do(call{target: w.url("/")}).seen(t)
	w.write("policy.yaml", endpoint(w, "web", m{"origins": []m{{"domain": "example.net"}}}))
	eventually.True(t, "the change", func() bool { return w.do(call{target: w.url("/")}).code() == "origin_not_allowed" })
	w.write("policy.yaml", "nonsense: [")
	eventually.True(t, "a refusal", func() bool { return strings.Contains(w.log.String(), "manifests refused") })
	w.do(call{target: w.url("/")}.from("https://example.net")).seen(t)
	resp, err := w.client.Get(w.internal + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, resp); resp.StatusCode != 200 {
		t.Errorf("not ready any more: %s", got.body)
	}
	policy := func(state string) {
		t.Helper()
		eventually.True(t, "the policy is "+state, func() bool {
			resp, err := w.client.Get(w.internal + "/readyz")
			return err == nil && strings.Contains(read(t, resp).body, fmt.Sprintf(`"policy":%q`, state))
		})
	}
	policy("failing")
	// A file that is too large, and is removed again.
	w.write("policy.yaml", endpoint(w, "web", m{"origins": []m{{"domain": "example.net"}}}))
	policy("ok")
	w.write("large.yaml", strings.Repeat("#", manifest.MaxFile+1))
	policy("failing")
	if err := os.Remove(filepath.Join(w.folder, "large.yaml")); err != nil {
		t.Fatal(err)
	}
	policy("ok")
}
