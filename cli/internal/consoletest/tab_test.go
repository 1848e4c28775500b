package consoletest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// zone is the time zone of the browser. It is not UTC, so that its days differ from those of UTC.
const zone = "Europe/Berlin"

// tab is a window in a browser context of its own, without storage from other tests.
type tab struct {
	*testing.T
	*front
	ctx       context.Context
	contextID cdp.BrowserContextID
	keys      []string // none of them may appear in the page or its storage

	mu         sync.Mutex
	complaints []string
	asked      []string
	faulty     bool
}

// newTab opens a window. When the test ends, finish and checkSecrecy check the window.
func newTab(t *testing.T, w *world) *tab {
	t.Helper()
	b := &tab{T: t, front: newFront(t, w), keys: []string{w.APIKey}}
	ctx, cancel := chromedp.NewContext(w.browser, chromedp.WithTargetID(b.newWindow(w)))
	t.Cleanup(cancel)
	b.ctx, cancel = context.WithTimeout(ctx, 10*time.Minute)
	t.Cleanup(cancel)
	chromedp.ListenTarget(b.ctx, b.listen)
	b.run(network.Enable(), cdplog.Enable(), emulation.SetTimezoneOverride(zone), b.script(watchPage))
	t.Cleanup(b.finish)
	return b
}

// another opens an address in a second tab of the same browser context, as ctrl-click does.
func (b *tab) another(path string) *tab {
	b.Helper()
	id, err := target.CreateTarget(b.URL + path).WithBrowserContextID(b.contextID).Do(cdp.WithExecutor(b.ctx, chromedp.FromContext(b.ctx).Browser))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithTargetID(id))
	b.Cleanup(cancel)
	return &tab{T: b.T, front: b.front, ctx: ctx, contextID: b.contextID, keys: b.keys}
}

// newWindow opens an empty window in a new browser context. The browser opens a tab only if a window exists.
func (b *tab) newWindow(w *world) (id target.ID) {
	b.Helper()
	all := cdp.WithExecutor(w.browser, chromedp.FromContext(w.browser).Browser)
	var err error
	if b.contextID, err = target.CreateBrowserContext().Do(all); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = target.DisposeBrowserContext(b.contextID).Do(all) })
	if id, err = target.CreateTarget("about:blank").WithBrowserContextID(b.contextID).WithNewWindow(true).Do(all); err != nil {
		b.Fatal(err)
	}
	return id
}

// watchPage records violations of the page's Content-Security-Policy, the longest task, and every state that a part of the
// page was in.
const watchPage = `
window.refused = [];
addEventListener("securitypolicyviolation", e => refused.push(e.violatedDirective + " " + e.blockedURI + " " + e.sample));
window.longest = 0;
new PerformanceObserver(list => { for (const e of list.getEntries()) longest = Math.max(longest, e.duration); }).observe({ type: "longtask", buffered: true });
window.states = new Set();
new MutationObserver(() => document.querySelectorAll("[data-state]").forEach(e => states.add(e.dataset.state))).observe(document, { subtree: true, childList: true, attributeFilter: ["data-state"] });
`

func (b *tab) script(source string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(source).Do(ctx)
		return err
	})
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *page.EventJavascriptDialogOpening:
		b.complaints = append(b.complaints, "a dialog: "+e.Message)
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, "exception: "+e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if slices.Contains([]runtime.APIType{runtime.APITypeError, runtime.APITypeWarning, runtime.APITypeAssert}, e.Type) {
			var said []string
			for _, a := range e.Args {
				said = append(said, string(a.Value)+a.Description)
			}
			b.complaints = append(b.complaints, fmt.Sprintf("console.%s: %s", e.Type, strings.Join(said, " ")))
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level != cdplog.LevelError && e.Entry.Level != cdplog.LevelWarning {
			return
		}
		if b.faulty && e.Entry.Source == cdplog.SourceNetwork {
			return // the browser logs each answer that the test broke
		}
		b.complaints = append(b.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
	}
}

// breaks injects faults from now on. The browser may then log network errors.
func (b *tab) breaks(faults ...*fault) {
	b.mu.Lock()
	b.faulty = true
	b.mu.Unlock()
	b.front.breaks(faults...)
}

// finish checks the window at the end of each test.
func (b *tab) finish() {
	b.Helper()
	if b.ctx.Err() != nil {
		b.Errorf("the test took too long: %v", b.ctx.Err())
		return
	}
	for _, refused := range eval[[]string](b, `window.refused ?? []`) {
		b.Errorf("the Content-Security-Policy refused %s", refused)
	}
	b.checkSecrecy()
	b.checkRequests(b.T, b.keys)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, complaint := range b.complaints {
		b.Errorf("the browser complains: %s", complaint)
	}
	for _, asked := range b.asked {
		u, err := url.Parse(asked)
		if err != nil {
			b.Error(err)
			continue
		}
		// data: and blob: send no requests. The browser's own controls use data: for their images.
		if origin := u.Scheme + "://" + u.Host; origin != b.URL && origin != b.provider && u.Scheme != "blob" && u.Scheme != "data" {
			b.Errorf("the page asked %s", asked)
		}
	}
}

// checkSecrecy fails the test if a key appears where it must not.
func (b *tab) checkSecrecy() {
	b.Helper()
	places := eval[map[string]string](b, `(() => {
		let stored = "";
		try { stored = JSON.stringify({ ...localStorage }); } catch {}
		return { "local storage": stored, cookies: document.cookie, text: document.body.innerText, markup: document.documentElement.outerHTML,
			address: location.href, title: document.title, "window.name": window.name, "history.state": JSON.stringify(history.state) };
	})()`)
	var entries []*page.NavigationEntry
	b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		_, entries, err = page.GetNavigationHistory().Do(ctx)
		return err
	}))
	for _, e := range entries {
		places["the history"] += e.URL + " " + e.Title + "\n"
	}
	b.mu.Lock()
	places["requested addresses"] = strings.Join(b.asked, "\n")
	places["the browser's console"] = strings.Join(b.complaints, "\n")
	b.mu.Unlock()
	for _, key := range b.keys {
		for place, text := range places {
			if strings.Contains(text, key) {
				b.Errorf("the key is in %s", place)
			}
		}
	}
}

// run runs actions in the browser.
func (b *tab) run(actions ...chromedp.Action) {
	b.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// eval returns the value of a JavaScript expression.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	var value T
	if err := chromedp.Run(b.ctx, chromedp.Evaluate(expression, &value, awaited)); err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return value
}

// awaited makes an evaluation wait for its promise.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// pageTimeout is how long a page may take to show something, on a busy machine too.
const pageTimeout = 5 * time.Minute

// until waits until a JavaScript expression is true.
func (b *tab) until(what, expression string) {
	b.Helper()
	began := time.Now()
	for pause := 20 * time.Millisecond; ; pause = min(pause*5/4, 250*time.Millisecond) {
		// During a navigation there is no page to evaluate the expression.
		var holds bool
		err := chromedp.Run(b.ctx, chromedp.Evaluate(`!!(`+expression+`)`, &holds))
		if err == nil && holds {
			return
		}
		if time.Since(began) > pageTimeout || b.ctx.Err() != nil {
			var text string
			_ = chromedp.Run(b.ctx, chromedp.Evaluate(`[location.href, document.querySelector("dialog")?.innerText ?? "no dialog", (document.querySelector("main") ?? document.body).innerText].join("\n")`, &text))
			b.Fatalf("%s: not within %v (%v). The page says:\n%.1000s", what, pageTimeout, err, text)
		}
		time.Sleep(pause) // Each look takes the time of the page that is waited for, so looks become rarer.
	}
}

// quote returns a text as a JavaScript string.
func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// text returns the visible text of the first element of a selector.
func (b *tab) text(selector string) string {
	b.Helper()
	b.until(selector, `document.querySelector(`+quote(selector)+`)`)
	return eval[string](b, `document.querySelector(`+quote(selector)+`).innerText`)
}

// texts returns the visible texts of all elements of a selector.
func (b *tab) texts(selector string) []string {
	b.Helper()
	return eval[[]string](b, `[...document.querySelectorAll(`+quote(selector)+`)].map(e => e.innerText)`)
}

// number returns the number in an element, without its commas.
func (b *tab) number(selector string) int {
	b.Helper()
	text := b.text(selector)
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err != nil {
		b.Fatalf("%s: %q is not a number", selector, text)
	}
	return n
}

// shows waits until the page contains a text.
func (b *tab) shows(text string) {
	b.Helper()
	b.until(text, `document.body.innerText.includes(`+quote(text)+`)`)
}

// state waits until the page or a part of it is in a state.
func (b *tab) state(state string) {
	b.Helper()
	b.until("the state "+state, `document.querySelector('[data-state="`+state+`"]')`)
}

// open goes to an address, as if it was typed.
func (b *tab) open(path string) {
	b.Helper()
	b.run(chromedp.Navigate(b.URL + path))
}

// signIn opens an address of a project by a link that signs in.
func (b *tab) signIn(project, key, path string) {
	b.Helper()
	if !slices.Contains(b.keys, key) {
		b.keys = append(b.keys, key)
	}
	b.open(path + "#" + url.Values{"project": {project}, "key": {key}}.Encode())
	b.until("signed in", `document.querySelector("nav .project")?.innerText.includes(`+quote(project)+`)`)
}

// press presses keys, one after the other.
func (b *tab) press(keys ...string) {
	b.Helper()
	for _, key := range keys {
		b.run(chromedp.KeyEvent(key))
	}
}

// click clicks on the first element of a selector.
func (b *tab) click(selector string) {
	b.Helper()
	b.until(selector, `document.querySelector(`+quote(selector)+`)`)
	b.run(chromedp.Click(selector, chromedp.ByQuery))
}

// clickText clicks on the first button or link with exactly this text.
func (b *tab) clickText(text string) {
	b.Helper()
	found := `[...document.querySelectorAll("button, a, summary")].find(e => (e.innerText ?? "").trim() === ` + quote(text) + ` && e.checkVisibility() && !e.disabled)`
	b.until(text, found)
	where := func() (x, y float64) {
		at := eval[[]float64](b, `(() => { const e = `+found+`; e.scrollIntoView({ block: "center" }); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`)
		return at[0], at[1]
	}
	// While the page is still loading, elements move.
	x, y := where()
	for {
		time.Sleep(50 * time.Millisecond) // An element stands still if it does so for a few frames.
		againX, againY := where()
		if againX == x && againY == y {
			break
		}
		x, y = againX, againY
	}
	b.run(chromedp.MouseClickXY(x, y))
}

// choose selects a value in the list with a label.
func (b *tab) choose(label, value string) {
	b.Helper()
	found := `[...document.querySelectorAll("label")].find(l => l.innerText.trim().startsWith(` + quote(label) + `))?.querySelector("select")`
	b.until(label, found)
	eval[bool](b, `(() => { const s = `+found+`; s.value = `+quote(value)+`; s.dispatchEvent(new Event("change", { bubbles: true })); return true; })()`)
}

// shownAddress is the address of the window in JavaScript, without the time zone that the console adds.
const shownAddress = `location.href.slice(location.origin.length).replace(/&tz=[^&#]*/, "").replace(/\?tz=[^&#]*&?/, "?").replace(/\?$/, "")`

// address returns the part of the address after the origin, without the time zone.
func (b *tab) address() string {
	b.Helper()
	return eval[string](b, shownAddress)
}
