package consoletest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
)

const overview = "/console/p/" + demoProject + "/overview"

// stored returns the names of all items of the page in each storage of the browser.
func (b *tab) stored() map[string][]string {
	b.Helper()
	return eval[map[string][]string](b, `(async () => ({
		session: Object.keys(sessionStorage), local: Object.keys(localStorage), cookies: document.cookie.split(";").filter(Boolean),
		databases: (await indexedDB.databases()).map(d => d.name), caches: window.caches ? await caches.keys() : [],
	}))()`)
}

func TestLongSignInByLink(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.open("/console/#project=" + demoProject + "&key=" + w.APIKey)
	b.until("signed in", `document.querySelector("nav .project")?.innerText.includes("`+demoProject+`")`)
	if got := b.address(); got != overview {
		t.Errorf("the address is %s", got)
	}
	b.checkSecrecy()
	b.shows("Entries a day")
	only := map[string][]string{"session": {"lectern.session"}, "local": {}, "cookies": {}, "databases": {}, "caches": {}}
	if diff := cmp.Diff(only, b.stored()); diff != "" {
		t.Errorf("the browser keeps: %s", diff)
	}
	if got := eval[int](b, `history.length`); got != 2 { // the empty window, and the console
		t.Errorf("the history has %d addresses", got)
	}

	b.run(chromedp.Reload())
	b.until("the session goes on", `document.querySelector("[data-figure=entries]")`)

	b.choose("Times in", "UTC")
	// A link opens in a tab of its own, with the session. The sign-out is for all tabs, and for no other application.
	other := b.another(overview)
	other.until("signed in, too", `document.querySelector("nav .project")?.innerText.includes("`+demoProject+`")`)
	eval[bool](b, `localStorage.setItem("another", "1") === sessionStorage.setItem("another", "1")`)
	b.clickText("Sign out")
	other.until("signed out, too", `document.querySelector("form input[name=key]") && sessionStorage.length === 0`)
	b.until("signed out", `document.querySelector("form input[name=key]") && !document.querySelector("nav")`)
	nothing := map[string][]string{"session": {"another"}, "local": {"another"}, "cookies": {}, "databases": {}, "caches": {}}
	if diff := cmp.Diff(nothing, b.stored()); diff != "" {
		t.Errorf("the browser keeps after the sign-out: %s", diff)
	}
	if got := b.address(); got != "/console/" {
		t.Errorf("the address is %s", got)
	}
	b.run(chromedp.Evaluate(`setTimeout(() => history.back()); 0`, nil))
	b.until("nothing shows", `location.protocol === "about:" || document.querySelector("form input[name=key]")`)
	b.open(overview)
	b.until("the sign-in again", `document.querySelector("form input[name=key]")`)
	if text := b.text("body"); strings.Contains(text, "Entries a day") {
		t.Errorf("the page shows after the sign-out: %s", text)
	}
}

// TestLongSignInByForm checks that a shared address asks a visitor without a session for a key, and then shows its page.
func TestLongSignInByForm(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.breaks() // no fault, but the browser logs the 401
	b.keys = append(b.keys, "rk_mistyped")
	const shared = "/console/p/" + demoProject + "/experiments?status=running"
	b.open(shared)
	b.until("the form", `document.querySelector("form input[name=key]")`)
	if got := eval[string](b, `document.querySelector("input[name=project]").value`); got != demoProject {
		t.Errorf("the project is %q", got)
	}
	b.run(chromedp.SendKeys("input[name=project]", " ", chromedp.ByQuery)) // as copied with a blank
	b.run(chromedp.SendKeys("input[name=key]", "rk_mistyped"+kb.Enter, chromedp.ByQuery))
	b.state("401")
	b.shows("The API key is not accepted")
	if diff := cmp.Diff([]string{}, b.stored()["session"]); diff != "" {
		t.Errorf("a key that is refused is kept: %s", diff)
	}

	b.run(chromedp.Evaluate(`document.querySelector("input[name=key]").select()`, nil), chromedp.KeyEvent(w.APIKey+kb.Enter))
	b.until("the page of the address", `document.querySelector("h1")?.innerText === "Experiments"`)
	if got := b.address(); got != shared {
		t.Errorf("the address is %s, want %s", got, shared)
	}
}

// TestLongKeyOfOneScope checks that a key of one scope can sign in, and that other pages show the API's refusal.
func TestLongKeyOfOneScope(t *testing.T) {
	t.Parallel()
	w := start(t)
	key := w.mint(t, demoProject, "embeddables:read")
	b := newTab(t, w)
	b.breaks() // no fault, but the browser logs each 403
	b.signIn(demoProject, key, overview)
	b.state("403")
	b.shows("The API key may not read this")
	b.clickText("Embeddables")
	b.until("the embeddables", `document.querySelectorAll("main tbody tr").length === 3`)
}

// TestLongAnotherProjectAsks checks that an address of another project does not use the key of the session, and offers to
// sign out.
func TestLongAnotherProjectAsks(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.signIn(demoProject, w.APIKey, overview)
	b.shows("Entries a day")
	b.open("/console/p/pr_other/entries")
	b.shows("You are signed in to " + demoProject)
	for _, r := range b.seen() {
		if strings.HasPrefix(r.URL.Path, "/projects/pr_other") {
			t.Errorf("the key of %s was sent for %s", demoProject, r.URL.Path)
		}
	}
	b.clickText("Sign out of " + demoProject)
	b.until("signed out", `sessionStorage.length === 0 && document.querySelector("input[name=project]")?.value === ""`)
}

// TestLongLinkAsksBeforeItReplaces checks that a link with another key does not replace a session unless the visitor agrees.
func TestLongLinkAsksBeforeItReplaces(t *testing.T) {
	t.Parallel()
	w := start(t)
	other := w.mint(t, demoProject)
	b := newTab(t, w)
	b.keys = append(b.keys, other)
	b.signIn(demoProject, w.APIKey, overview)
	follow := func(key string, agrees bool) (asked []string) {
		return eval[[]string](b, `(async () => {
			const asked = [];
			window.confirm = (question) => { asked.push(question); return `+strconv.FormatBool(agrees)+`; };
			const taken = new Promise((done) => addEventListener("hashchange", done, { once: true }));
			location.hash = "#project=`+demoProject+`&key=`+key+`";
			await taken;
			return [...asked, location.hash, JSON.parse(sessionStorage.getItem("lectern.session")).key];
		})()`)
	}
	question := "You are signed in to " + demoProject + ". Sign in to " + demoProject + " with the key of this link instead?"
	for _, tt := range []struct {
		name   string
		key    string
		agrees bool
		want   []string
	}{
		{"the key of the session", w.APIKey, false, []string{"", w.APIKey}},
		{"another key", other, false, []string{question, "", w.APIKey}},
		{"another key that is wanted", other, true, []string{question, "", other}},
	} {
		if diff := cmp.Diff(tt.want, follow(tt.key, tt.agrees)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestLongNoSuchPage checks that an address without a page keeps the visitor signed in.
func TestLongNoSuchPage(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.signIn(demoProject, w.APIKey, "/console/p/"+demoProject+"/nonsense/a/b")
	b.shows("There is no such page")
	b.open("/console/nonsense%2f..")
	b.shows("There is no such page")
}

// TestLongBlockedStorage checks that a browser that blocks all storage shows the sign-in, and pages until the tab is closed.
func TestLongBlockedStorage(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.run(b.script(`
		const blocked = () => { throw new DOMException("Access is denied for this document.", "SecurityError"); };
		for (const name of ["sessionStorage", "localStorage"]) Object.defineProperty(window, name, { get: blocked });
		window.BroadcastChannel = class { constructor() { blocked(); } };`))
	b.open(overview)
	b.until("the form", `document.querySelector("form input[name=key]")`)
	b.signIn(demoProject, w.APIKey, overview)
	b.shows("Entries a day")
	b.choose("Times in", "UTC")
	b.clickText("Sign out")
	b.until("signed out", `document.querySelector("form input[name=key]") && !document.querySelector("nav")`)
}
