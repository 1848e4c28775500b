package consoletest

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// asks returns the sorted paths that the page has asked the API for, after the first requests. The change feed is not among
// them.
func (b *tab) asks(first int) []string {
	b.Helper()
	var paths []string
	for _, r := range b.seen()[first:] {
		if strings.HasPrefix(r.URL.Path, "/projects/") && !strings.HasSuffix(r.URL.Path, "-changes") && r.Method == http.MethodGet {
			paths = append(paths, strings.TrimPrefix(r.URL.Path, "/projects/"+demoProject))
		}
	}
	slices.Sort(paths)
	return paths
}

// TestLongTabsShareRequests checks that no tab of an embeddable repeats what another tab has read, and that the name of the
// embeddable stays. A page that is opened again is shown before its answers arrive.
func TestLongTabsShareRequests(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.signIn(demoProject, w.APIKey, at(demoProject, "funnel/"+solar+"?days=30"))
	b.until("the funnel", find(w, "funnel").shown)
	const title = "What would solar save you?"
	b.run(chromedp.Evaluate(`window.titles = new Set(); new MutationObserver(() => titles.add(document.querySelector("h1")?.innerText)).observe(document.body, { subtree: true, childList: true, characterData: true })`, nil))
	for _, tt := range []struct{ tab, shown, asks string }{
		{"Answers", find(w, "answers").shown, "/embeddables/" + solar + " /entries-answers /entries-answers"},
		{"Versions", find(w, "embeddable").shown, "/embeddables/" + solar + " /embeddables/" + solar + "/versions /embeddables/" + solar + "/versions/3 /embeddables/" + solar + "/versions/4"},
		{"Entries", `document.querySelectorAll("tr[data-entry]").length === 50 && document.querySelector("[data-total]")`, "/embeddables/" + solar + " /entries /entries-counts"},
		{"Funnel", find(w, "funnel").shown, "/entries-funnel /entries-funnel"},
	} {
		before := len(b.seen())
		eval[bool](b, `[...document.querySelectorAll(".tabs a")].find(e => e.innerText === `+quote(tt.tab)+`).click() ?? true`)
		b.until(tt.tab, tt.shown)
		eventually.True(t, tt.tab+" asks", func() bool { return len(b.asks(before)) > strings.Count(tt.asks, " ") }) // it may be shown from memory before
		b.until("all is read", `!document.querySelector("[aria-busy=true], [data-state=loading]")`)
		if got := strings.Join(b.asks(before), " "); got != tt.asks {
			t.Errorf("%s asks %s, want %s", tt.tab, got, tt.asks)
		}
	}
	if titles := eval[[]string](b, `[...titles]`); len(titles) != 1 || titles[0] != title {
		t.Errorf("the titles were %q", titles)
	}

	// The page shows what it read before until the server answers.
	gate := make(chan struct{})
	b.breaks(&fault{part: "/entries-answers", serve: hold(gate)})
	b.clickText("Answers")
	b.until("the answers from memory", find(w, "answers").shown)
	close(gate)
	eventually.True(t, "the page that is opened again sends the ETag of the answer that it has", func() bool {
		return slices.ContainsFunc(b.seen(), func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/entries-answers") && r.Header.Get("If-None-Match") != ""
		})
	})
}

// TestLongOverviewAsksOnce checks that opening the overview asks each question once, and one question for all figures.
func TestLongOverviewAsksOnce(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.show(w, find(w, "overview"))
	b.until("it is live", `document.querySelector("[data-live=live]")`)
	asks := b.asks(0)
	t.Log(asks)
	if len(asks) > 7 {
		t.Errorf("%d requests: %s", len(asks), asks)
	}
	if figures := slices.DeleteFunc(slices.Clone(asks), func(path string) bool { return !strings.HasPrefix(path, "/entries-") }); !slices.Equal(figures, []string{"/entries-overview"}) {
		t.Errorf("the figures are from %s", figures)
	}
	var seen []string
	for _, r := range b.seen() {
		if seen = append(seen, r.Method+" "+r.URL.String()); slices.Contains(seen[:len(seen)-1], seen[len(seen)-1]) {
			t.Errorf("the page asks again: %s", seen[len(seen)-1])
		}
	}
}

// TestLongBackKeepsScroll checks that the browser's back button shows a page as far down as it was left, also while the page is
// still read.
func TestLongBackKeepsScroll(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.show(w, find(w, "entries"))
	b.run(chromedp.Evaluate(`scrollTo(0, 700)`, nil))
	at700 := `Math.abs(scrollY - 700) < 2 && document.querySelectorAll("tr[data-entry]").length === 50`
	b.until("it is scrolled", at700)
	eval[bool](b, `document.querySelectorAll("tr[data-entry] a")[20].click() ?? true`)
	b.until("an entry, from its top", `document.querySelector("[data-answers]") && document.querySelector("[data-events]") && scrollY === 0`)
	b.run(chromedp.NavigateBack())
	b.until("as it was left", at700)
	b.run(chromedp.NavigateForward())
	b.until("the entry again", `document.querySelector("[data-answers]") && scrollY === 0`)
}

// TestLongNoSuchThing checks what pages say about an id that does not exist, and about a key that is revoked while an empty
// page waits. An entry whose answers are spaces has a link.
func TestLongNoSuchThing(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project = "pr_nosuch"
	key := w.newProject(t, project, "No such thing", "em_real")
	b := newTab(t, w)
	b.signIn(project, key, at(project, "funnel/em_typo"))
	for _, path := range []string{"funnel/em_typo", "answers/em_typo", "overview?embeddable=em_typo"} {
		b.open(at(project, path))
		b.shows("There is no embeddable with this id")
	}
	b.open(at(project, "funnel/em_real"))
	b.shows("This page waits for it")
	b.breaks(&fault{part: "/entries-changes", serve: refusal(http.StatusUnauthorized, "unauthorized")})
	b.run(chromedp.Reload())
	b.state("401")
	b.breaks()

	w.send(t, "entries", newEntry(project, "em_other", "en_spaces", time.Now(), `{"a":"   ","b":"\t","c":7}`))
	b.open(at(project, "entries"))
	b.until("a link that can be clicked", `document.querySelector("tr[data-entry=en_spaces] a")?.getBoundingClientRect().width > 5`)
}
