package e2e

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// page calls the third party through the proxy, as a front-end does, and shows the answer.
const page = `<!doctype html><title>app</title><pre id=said></pre><script>
fetch(%q, {headers: {"X-Project-ID": "pr_demo", "X-Environment": "prod", "Authorization": "Bearer {{ cred_third_party }}"}})
  .then(async r => r.status + " " + r.headers.get("X-Proxy-Worker-Success") + " " + await r.text())
  .catch(e => "" + e)
  .then(said => { document.getElementById("said").textContent = said; });
</script>`

// testBrowser calls the third party from a page of app.example.com in a real browser, over the Gateway's TLS. The
// browser sends the preflight that the headers require. The proxy refuses a page of another origin.
func (r *release) testBrowser(t *testing.T, value string) {
	browser := needs.Chromium(t)
	target := fmt.Sprintf("http://echo.%s.svc.cluster.local:8080/v1/charges", r.namespace)
	site := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, page, "https://api.example.test/proxy?url="+url.QueryEscape(target))
	}))
	defer site.Close()
	gateway := strings.TrimPrefix(r.url, "http://")
	for _, tt := range []struct{ host, want string }{
		{"app.example.com", "200 true "},
		{"app.example.org", "TypeError: Failed to fetch"},
	} {
		folder, err := os.MkdirTemp("", "browser")
		if err != nil {
			t.Fatal(err)
		}
		// The browser's children still write for a moment after the browser's end, which t.TempDir would not survive.
		defer eventually(t, "the browser's folder is removed", func() error { return os.RemoveAll(folder) })
		out, err := command(t.Context(), "", browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
			"--user-data-dir="+folder, "--ignore-certificate-errors", "--no-proxy-server",
			fmt.Sprintf("--host-resolver-rules=MAP %s:443 %s, MAP api.example.test:443 %s:443", tt.host, site.Listener.Addr(), gateway),
			"--virtual-time-budget=20000", "--dump-dom", "https://"+tt.host+"/")
		if err != nil {
			t.Fatal(err)
		}
		_, said, _ := strings.Cut(out, "<pre id=\"said\">")
		said, _, _ = strings.Cut(said, "</pre>")
		said = html.UnescapeString(said)
		if !strings.HasPrefix(said, tt.want) || strings.HasPrefix(tt.want, "200") && !strings.Contains(said, digestOf(value)) {
			t.Errorf("a page of %s got %q; want %q and the value's digest", tt.host, said, tt.want)
		}
	}
}
