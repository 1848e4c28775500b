package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// page calls the proxy like a front-end, and records the answer.
const page = `<!doctype html><title>front-end</title><script>
const proxy = %q, target = %q, results = {};
const headers = { "X-Project-ID": "pr_demo", "X-Environment": "prod" };
async function ask(name, path, options) {
  try {
    const r = await fetch(proxy + "/proxy?url=" + encodeURIComponent(target + path), { ...options, headers: { ...headers, ...(options.headers || {}) } });
    results[name] = { status: r.status, success: r.headers.get("x-proxy-worker-success"), own: r.headers.get("x-of-the-target"), body: await r.text() };
  } catch (e) {
    results[name] = { failed: String(e) };
  }
}
async function run() {
  await ask("get", "/v1/charges?limit=3", { headers: { Authorization: "Bearer {{ cred_main }}" } });
  await ask("post", "/v1/charges", { method: "POST", headers: { "Content-Type": "application/json", "X-Use-Body-Templating": "true" }, body: JSON.stringify({ key: "{{ cred_other }}" }) });
  await ask("refused", "/v1/charges", { headers: { Authorization: "Bearer {{ cred_nobody }}" } });
  document.title = "done";
}
run();
</script>`

// TestInABrowser lets a page call a third party through the proxy, from an allowed origin and from another.
func TestInABrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("no chromium: scripts/setup browser installs it")
	}
	methods := make(chan string, 64)
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		methods <- r.Method
		w.Header().Set("X-Of-The-Target", "seen")
		right := r.Header.Get("Authorization") == "Bearer "+canary || string(b) == `{"key":"`+other+`"}`
		_, _ = fmt.Fprintf(w, "right=%v and the header says %s", right, r.Header.Get("Authorization"))
	}), manifests: func(w *world) string {
		return endpoint(w, "web", m{"origins": []m{{"pattern": `http://allowed\.localhost:\d+`}}})
	}})
	pages := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(rw, page, w.base, "https://api.lectern.test:"+w.target.port)
	}))
	defer pages.Close()
	_, port, _ := net.SplitHostPort(pages.Listener.Addr().String())

	profile, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	// The browser keeps writing for a moment after its end was requested.
	defer func() { eventually(t, "the profile is gone", func() bool { return os.RemoveAll(profile) == nil }) }()
	allocator, cancel := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(chromium), chromedp.UserDataDir(profile), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("host-resolver-rules", "MAP *.localhost 127.0.0.1"))
	defer cancel()
	visit := func(host string) map[string]map[string]any {
		t.Helper()
		ctx, cancel := chromedp.NewContext(allocator)
		defer cancel()
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		var text string
		if err := chromedp.Run(ctx, chromedp.Navigate("http://"+host+":"+port+"/"),
			chromedp.Poll(`document.title === "done"`, nil),
			chromedp.Evaluate(`JSON.stringify(results)`, &text)); err != nil {
			t.Fatal(err)
		}
		var results map[string]map[string]any
		if err := json.Unmarshal([]byte(text), &results); err != nil {
			t.Fatal(err)
		}
		return results
	}

	got := visit("allowed.localhost")
	for _, name := range []string{"get", "post"} {
		r := got[name]
		if r["status"] != 200.0 || r["success"] != "true" || r["own"] != "seen" || !strings.HasPrefix(fmt.Sprint(r["body"]), "right=true") || strings.Contains(fmt.Sprint(r["body"]), canary) {
			t.Errorf("%s: %v", name, r)
		}
	}
	if r := got["refused"]; r["status"] != 404.0 || r["success"] != "false" || !strings.Contains(fmt.Sprint(r["body"]), "credential_not_allowed") {
		t.Errorf("the page cannot read why it was refused: %v", r)
	}
	if len(methods) != 2 {
		t.Errorf("the target was called %d times", len(methods))
	}
	for name, r := range visit("evil.localhost") {
		if r["failed"] == nil {
			t.Errorf("%s: a page of another origin got %v", name, r)
		}
	}
	if len(methods) != 2 {
		t.Errorf("the target was called for another origin")
	}
}
