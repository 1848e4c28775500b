package consoletest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	console "github.com/lectern-dev/lectern/services/console/app"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// issuer is the address of an OpenID provider, which the services of the world trust. The provider is another process,
// which starts when a test needs it.
type issuer struct {
	*httptest.Server

	mu       sync.Mutex
	provider http.Handler // nil: every connection breaks
	refuses  bool         // whether the token endpoint refuses each request
}

func newIssuer() *issuer {
	i := &issuer{}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		provider, refuses := i.provider, i.refuses
		i.mu.Unlock()
		switch {
		case provider == nil:
			panic(http.ErrAbortHandler)
		case refuses && r.URL.Path == "/token" && r.Method == http.MethodPost:
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"the session is over"}`))
		default:
			provider.ServeHTTP(w, r)
		}
	}))
	// Browsers send the cookies of a host to all of its ports, so the provider has another host than the console.
	i.URL = strings.Replace(i.URL, "127.0.0.1", "localhost", 1)
	return i
}

// set changes what the issuer answers from now on, and returns its former provider.
func (i *issuer) set(provider http.Handler, refuses bool) http.Handler {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.provider
	i.provider, i.refuses = provider, refuses
	return before
}

// startProvider starts npm's oidc-provider for the console at an address.
func (w *world) startProvider(t *testing.T, console string) {
	t.Helper()
	needs.Node(t)
	install := exec.CommandContext(t.Context(), "scripts/npm-ci", "cli/internal/consoletest/testdata/provider")
	install.Dir = "../../.."
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "node", "testdata/provider/provider.js")
	cmd.Env = append(os.Environ(), "ISSUER="+w.issuer.URL, "CONSOLE="+console)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the provider: %v\n%s", err, said.String())
	}
	w.issuer.set(proxyTo(t, strings.TrimSpace(line)), false)
}

func proxyTo(t *testing.T, address string) http.Handler {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.SetXForwarded()
	}}
}

// startConsole starts a console whose visitors sign in with the issuer, and returns its address.
func (w *world) startConsole(t *testing.T) string {
	t.Helper()
	var cfg console.Config
	if err := config.Load(&cfg, map[string]string{
		"LISTEN_PUBLIC": "127.0.0.1:0", "LISTEN_INTERNAL": "127.0.0.1:0", "DRAIN_DELAY": "0s",
		"CONSOLE_ISSUER": w.issuer.URL, "CONSOLE_CLIENT_ID": "console",
	}); err != nil {
		t.Fatal(err)
	}
	cfg.LogOutput = &bytes.Buffer{}
	ready, ended := make(chan string, 1), make(chan error, 1)
	cfg.HTTP.Ready = func(public, _ net.Addr) { ready <- "http://" + public.String() }
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- console.Run(ctx, cfg) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case address := <-ready:
		return address
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return ""
	}
}

// grant gives a subject of the issuer the right to read a project.
func (w *world) grant(t *testing.T, project, subject string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"name": "console of " + subject, "scopes": []string{"entries:read", "embeddables:read", "experiments:read"},
		"identity": map[string]string{"issuer": w.issuer.URL, "subject": subject},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.InternalURL+"/internal/projects/"+project+"/keys", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", w.AdminAPIKey)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("a grant for %s: %s", subject, answer.Status)
	}
}

const tokenOfTab = `JSON.parse(sessionStorage.getItem("lectern.session"))?.tokens?.token`

// token returns the token of the window, which must not appear anywhere else.
func (b *tab) token() string {
	b.Helper()
	token := eval[string](b, tokenOfTab)
	b.keys = append(b.keys, token)
	return token
}

// login signs in at the provider's page.
func (b *tab) login(name string) {
	b.Helper()
	b.until("the provider's page", `document.querySelector("input[name=login]")`)
	b.run(chromedp.SendKeys("input[name=login]", name+kb.Enter, chromedp.ByQuery))
}

// setClock sets the clock of the pages that the tab opens from now on, by a number of minutes.
func (b *tab) setClock(minutes int) {
	b.Helper()
	b.run(b.script(fmt.Sprintf(`{
		const before = Date, off = %d * 60000;
		Date = class extends before {
			constructor(...given) { given.length > 0 ? super(...given) : super(before.now() + off); }
			static now() { return before.now() + off; }
		};
	}`, minutes)))
}

// TestLongSignInWithProvider signs in with npm's oidc-provider on a device whose clock is 10 minutes fast, and returns to a
// shared address. Then it renews tokens, opens other tabs and signs out. Last come a visitor without a project whose clock is
// 10 minutes slow, and a provider that is down.
func TestLongSignInWithProvider(t *testing.T) {
	t.Parallel()
	w := start(t)
	source := axe(t)
	b := newTab(t, w)
	b.breaks() // the browser logs each 401, and the provider's failures
	b.setClock(10)
	b.provider = w.issuer.URL
	b.console = proxyTo(t, w.startConsole(t))
	w.startProvider(t, b.URL+"/console/")
	const second = "pr_second_of_ada"
	w.newProject(t, second, "The second", "")
	w.grant(t, demoProject, "ada")
	w.grant(t, second, "ada")
	button := "Sign in with " + strings.TrimPrefix(w.issuer.URL, "http://")

	const shared = "/console/p/" + demoProject + "/experiments?status=running"
	b.open(shared)
	b.until("the form", `document.querySelector("form input[name=key]")`)
	b.allLooks(source, "provider-sign-in")
	b.clickText(button)
	b.login("ada")
	b.until("the page of the address", `document.querySelector("h1")?.innerText === "Experiments"`)
	if got := b.address(); got != shared {
		t.Errorf("the address after the sign-in is %s, want %s", got, shared)
	}
	b.until("its content", `document.querySelectorAll("main tbody tr").length > 0`)
	b.token()
	b.checkSecrecy()
	only := map[string][]string{"session": {"lectern.session"}, "local": {}, "cookies": {}, "databases": {}, "caches": {}}
	if diff := cmp.Diff(only, b.stored()); diff != "" {
		t.Errorf("the browser keeps: %s", diff)
	}

	b.clickText("Connect")
	b.until("the projects", `document.querySelectorAll("[data-project]").length === 2`)
	if text := b.text("main"); strings.Contains(text, "Copy with the key") {
		t.Error("the page offers to copy a key")
	}
	b.allLooks(source, "provider-projects")
	b.clickText("The second")
	b.until("the other project", `document.querySelector("nav .project")?.innerText.includes("The second")`)

	// A link in a new tab signs in without a question, because the provider knows the visitor. The tab has tokens of its own.
	other := b.another(shared)
	other.until("signed in, too", `document.querySelector("h1")?.innerText === "Experiments"`)
	if got := other.address(); got != shared {
		t.Errorf("the address of the second tab is %s, want %s", got, shared)
	}
	if other.token() == b.token() {
		t.Error("two tabs have one token")
	}

	// A duplicate of a tab has its storage, forgets the tokens and gets others. They stay in the first tab, also after a reload.
	duplicate := b.another("/console/licenses.txt")
	copied := eval[string](b, `sessionStorage.getItem("lectern.session")`)
	eval[bool](duplicate, `sessionStorage.setItem("lectern.session", `+quote(copied)+`), true`)
	duplicate.open(shared)
	duplicate.until("tokens of its own", `JSON.parse(sessionStorage.getItem("lectern.session"))?.tab !== JSON.parse(`+quote(copied)+`).tab && document.querySelector("h1")?.innerText === "Experiments"`)
	b.run(page.BringToFront(), chromedp.Reload())
	b.until("the page", `document.querySelector("nav a[aria-current]")`)

	// A token is renewed before it expires, and after a 401. A page that nobody sees sends no requests.
	b.run(page.BringToFront())
	renewed := func(before string) { b.until("a new token", tokenOfTab+` && `+tokenOfTab+` !== `+quote(before)) }
	before := b.token()
	renewed(before)
	// Two tokens of the same second are equal. Tokens are renewed after 13 seconds.
	b.until("a token of two seconds", `Date.now() > JSON.parse(sessionStorage.getItem("lectern.session")).tokens.renewAt - 11000`)
	before = b.token()
	b.breaks(&fault{serve: func(w http.ResponseWriter, r *http.Request, run http.Handler) {
		if r.Header.Get("Authorization") == "Bearer "+before {
			refusal(http.StatusUnauthorized, "unauthorized")(w, r, run)
			return
		}
		run.ServeHTTP(w, r)
	}})
	b.clickText("Embeddables")
	renewed(before)
	b.until("the page", `document.querySelector("h1")?.innerText === "Embeddables" && !document.querySelector("[role=alert]")`)
	b.breaks()

	// A refused renewal ends the session, at the latest when the page asks for something after the token has expired. The
	// next sign-in returns to the page.
	provider := w.issuer.set(nil, false)
	w.issuer.set(provider, true)
	b.until("the sign-in", `document.querySelector("form input[name=key]") ||
		void [...document.querySelectorAll("nav a:not([aria-current])")].find((a) => /Embeddables|Experiments/.test(a.innerText))?.click()`)
	left := b.address()
	b.shows("The sign-in provider refused")
	b.allLooks(source, "provider-refused")
	if got := b.stored()["session"]; slices.Contains(got, "lectern.session") {
		t.Errorf("the browser keeps %q after a refused renewal", got)
	}
	w.issuer.set(provider, false)
	b.clickText(button)
	b.until("the page again", `!document.querySelector("form input[name=key]") && document.querySelector("nav a[aria-current]")`)
	if got := b.address(); got != left {
		t.Errorf("the address after the second sign-in is %s, want %s", got, left)
	}
	b.token()

	// Sign-out is for all tabs, and at the provider.
	b.clickText("Sign out")
	b.clickText("Sign me out")
	for _, tab := range []*tab{b, other} {
		tab.until("signed out", `document.querySelector("form input[name=key]") && sessionStorage.length === 0`)
	}
	if got := b.address(); got != "/console/" && !strings.HasPrefix(got, "/console/?") {
		t.Errorf("the address after the sign-out is %s", got)
	}

	// A visitor without a project learns what to ask for.
	b.setClock(-20)
	b.clickText(button)
	b.login("bob")
	b.state("no-project")
	if got, want := b.text("[data-identity]"), "issuer: "+w.issuer.URL+"\nsubject: bob"; strings.TrimSpace(got) != want {
		t.Errorf("the identity is %q, want %q", got, want)
	}
	b.shows("your provider left them all out of your token")
	b.allLooks(source, "provider-no-project")
	// Lectern accepts the token, and refuses the project. Another token would not help.
	before = b.token()
	b.open("/console/p/" + demoProject + "/overview")
	for _, page := range []string{"Entries", "Embeddables", "Overview"} {
		b.state("401")
		b.shows("You may not read this")
		b.clickText(page)
		b.until(page, `document.querySelector("h1")?.innerText === `+quote(page))
	}
	b.state("401")
	if b.token() != before {
		t.Error("a token without a right in the project was renewed")
	}
	// A provider that has forgotten the visitor would ask something: the new tab offers the usual sign-in.
	b.onBrowser(func(contextID cdp.BrowserContextID) chromedp.Action {
		return storage.ClearCookies().WithBrowserContextID(contextID)
	})
	other = b.another(shared)
	other.until("the sign-in", `document.querySelector("form input[name=key]") && !document.querySelector("[role=alert]")`)
	if got := other.address(); got != shared {
		t.Errorf("the address after a silent sign-in that failed is %s, want %s", got, shared)
	}
	b.clickText("Sign out")
	b.until("signed out", `document.querySelector("form input[name=key]")`)

	// A provider that is down.
	w.issuer.set(nil, false)
	b.clickText(button)
	b.state("sign-in")
	b.shows("The sign-in provider cannot be reached")
	b.allLooks(source, "provider-down")
	w.issuer.set(provider, false)
	b.clickText(button)
	b.until("the provider's page", `document.querySelector("input[name=login]")`)
	b.open("/console/")
}
