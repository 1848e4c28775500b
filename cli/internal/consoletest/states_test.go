package consoletest

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
)

// TestLongStates shows every page in all states. Each state names the problem. After a temporary fault the page recovers
// without a reload.
func TestLongStates(t *testing.T) {
	t.Parallel()
	w := start(t)
	emptyKey := w.newProject(t, "pr_empty", "Empty", "")
	for _, v := range views(w) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, w)
			var stage atomic.Int32
			gate := make(chan struct{})
			waits := refusal(http.StatusServiceUnavailable, "service_unavailable", "Retry-After", "1")
			stages := []func(http.ResponseWriter, *http.Request, http.Handler){
				0: func(w http.ResponseWriter, r *http.Request, run http.Handler) {
					hold(gate)(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { waits(w, r, run) }))
				},
				1: waits,
				2: refusal(http.StatusTooManyRequests, "rate_limited", "Retry-After", "1"),
				3: reset,
				4: func(w http.ResponseWriter, r *http.Request, run http.Handler) { run.ServeHTTP(w, r) },
			}
			b.breaks(&fault{serve: func(w http.ResponseWriter, r *http.Request, run http.Handler) { stages[stage.Load()](w, r, run) }})
			b.signIn(demoProject, w.APIKey, at(demoProject, v.path))
			b.state("slow")
			b.until("it was loading before", `states.has("loading")`)
			stage.Store(1)
			close(gate)
			b.waits("503")
			stage.Store(2)
			b.waits("429")
			stage.Store(3)
			b.waits("unreachable")
			stage.Store(4)
			b.until("it is shown at last", v.shown)
			if v.h1 != "" {
				b.until("its heading and title", `document.querySelector("h1").innerText === `+quote(v.h1)+` && document.title === `+quote(v.h1+" · Lectern"))
			}
			b.until("it waits no longer", `!document.querySelector("[data-state^=waiting]")`)
			for _, refused := range []struct {
				status      int
				code, state string
			}{{401, "unauthorized", "401"}, {403, "forbidden", "403"}, {500, "internal", "500"}} {
				b.breaks(&fault{serve: refusal(refused.status, refused.code)})
				b.run(chromedp.Reload())
				b.state(refused.state)
				b.shows("req-of-the-test")
			}
			b.breaks()
			// Several parts of a page may have failed.
			b.until("it is shown after new tries", `(`+v.shown+`) || void [...document.querySelectorAll("button")].find(e => e.innerText === "Try again")?.click()`)

			b.run(chromedp.Evaluate(`sessionStorage.clear()`, nil)) // or the link asks whether it may replace the session
			b.signIn("pr_empty", emptyKey, at("pr_empty", v.path))
			b.until("nothing is there", v.empty)
		})
	}
}

// waits waits until the page says that it waits after a fault, and until when.
func (b *tab) waits(fault string) {
	b.Helper()
	b.until("the wait after "+fault, `document.querySelector('[data-state="waiting-`+fault+`"]')?.innerText.includes("Trying again in ")`)
}

// offline disconnects the browser from the network, or connects it again.
func (b *tab) offline(is bool) {
	b.Helper()
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		// This command is deprecated, but Debian's Chromium does not have its successors.
		return cdp.Execute(ctx, "Network.emulateNetworkConditions", network.OverrideNetworkState(is, 0, -1, -1), nil)
	}))
}

// TestLongOffline checks that the page reports a lost network and keeps its content. Each page works again once the network
// is back.
func TestLongOffline(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	all := views(w)
	b.show(w, all[0])
	for _, v := range all {
		if strings.Contains(v.path, "/") || v.name == "overview" {
			continue // these are opened from a list, which cannot be read offline
		}
		b.breaks()
		b.offline(true)
		b.until("the banner", `document.querySelector(".content > [data-state=offline]")`)
		b.clickText(v.h1)
		b.until(v.name+" says why", `document.querySelector("main [data-state$=offline]")`)
		if banners := b.texts(".banner, .problem"); len(banners) != 1 {
			t.Errorf("%s, offline, has the banners %q", v.name, banners)
		}
		b.offline(false)
		b.until("the banner goes", `!document.querySelector("[data-state=offline]")`)
		b.until(v.name+" goes on", v.shown)
	}
}

// TestLongOutage checks that a page keeps its figures while the server is away, and says when the page read them. Once the server
// is back, the page reads the figures again.
func TestLongOutage(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	for _, name := range []string{"overview", "entries", "embeddables"} {
		b.show(w, find(w, name))
		b.clickText("Experiments")
		b.until("another page", find(w, "experiments").shown)
		b.breaks(&fault{serve: refusal(http.StatusServiceUnavailable, "service_unavailable")})
		b.clickText(find(w, name).h1)
		b.until(name+" in the outage", `document.querySelector("[data-state=waiting-503]")?.innerText.includes("The page shows what it read at ") && (`+find(w, name).shown+`)`)
		if banners := b.texts(".banner, .problem"); len(banners) != 1 {
			t.Errorf("%s, in an outage, has the banners %q", name, banners)
		}
		b.breaks()
		b.until(name+" is read again", `!document.querySelector("[data-state^=waiting]") && (`+find(w, name).shown+`)`)
	}
}

// TestLongCutOff checks that a truncated answer of a list neither loses a record nor shows one twice.
func TestLongCutOff(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	v := find(w, "entries")
	b.show(w, v)
	const read = `[...document.querySelectorAll("tr[data-entry]")].map(e => e.dataset.entry)`
	want := eval[[]string](b, read)
	// While the rest does not come, the page says that the list is incomplete.
	b.breaks(&fault{part: "/entries", serve: cutOff(5000)})
	b.run(chromedp.Reload())
	b.until("it says so", `document.querySelector("main [data-state^=waiting-incomplete], main [data-state^=waiting-unreachable]")`)
	b.breaks()
	b.until("all is read", v.shown)
	if diff := cmp.Diff(want, eval[[]string](b, read)); diff != "" {
		t.Errorf("after a cut: %s", diff)
	}
}
