package consoletest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/lectern-dev/lectern/client"
)

// TestLongOverview compares the figures of the overview with the API's entries.
func TestLongOverview(t *testing.T) {
	t.Parallel()
	w := start(t)
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	var created []time.Time
	var last time.Time
	for entry, err := range w.api.Entries(t.Context(), demoProject, client.EntryQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		created = append(created, entry.CreatedAt)
		if entry.CreatedAt.After(last) {
			last = entry.CreatedAt
		}
	}
	// The demo's data ends in the past, so the window ends on the day of the last entry.
	y, m, d := last.In(location).Date()
	from := func(days int) int {
		n := 0
		for _, at := range created {
			if !at.Before(time.Date(y, m, d-days+1, 0, 0, 0, 0, location)) {
				n++
			}
		}
		return n
	}

	b := newTab(t, w)
	b.signIn(demoProject, w.APIKey, overview)
	b.until("all is shown", find(w, "overview").shown)
	total := from(30)
	if got := b.number("[data-figure=entries]"); got != total {
		t.Errorf("%d entries in 30 days, want %d", got, total)
	}
	earlier := from(60) - total
	if got, want := b.text("[data-figure=entries] + span"), fmt.Sprintf("%.1f %% against the 30 days before", 100*math.Abs(float64(total-earlier))/float64(earlier)); !strings.Contains(got, want) {
		t.Errorf("the change is %q, want %q", got, want)
	}
	b.clickText("As a table")
	if rows := b.texts("details tbody tr"); len(rows) != 30 {
		t.Errorf("%d days in the table", len(rows))
	}
	sum := eval[int](b, `[...document.querySelectorAll("details tbody td:nth-child(2)")].reduce((n, e) => n + Number(e.innerText.replaceAll(",", "")), 0)`)
	if sum != total {
		t.Errorf("the table has %d entries, want %d", sum, total)
	}
	bars := eval[[]float64](b, `[...document.querySelectorAll(".chart svg a")].map(e => e.querySelector(".whole")?.getBBox().height ?? 0)`)
	if len(bars) != 30 || slices.Min(bars) <= 0 {
		t.Errorf("the bars are %v", bars)
	}

	// While another period is counted, the old figures are dimmed. A bar opens its entries.
	gate := make(chan struct{})
	b.breaks(&fault{part: "/entries-overview", serve: hold(gate)})
	b.clickText("7 days")
	b.until("dimmed", `document.querySelector("[data-stale] > dl.figures [data-figure=entries]") && getComputedStyle(document.querySelector("[data-stale] > dl.figures")).opacity < 0.5`)
	if got := b.number("[data-figure=entries]"); got != total {
		t.Errorf("while it counts, the page shows %d", got)
	}
	close(gate)
	b.until("counted", `!document.querySelector("[data-stale]")`)
	if got, want := b.number("[data-figure=entries]"), from(7); got != want {
		t.Errorf("%d entries in 7 days, want %d", got, want)
	}
	eval[bool](b, `document.querySelector(".chart svg a:last-child").dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }))`)
	b.until("the entries of the last day", `document.querySelector("[data-total='`+quoteInt(from(1))+`']") && document.querySelectorAll("tr[data-entry]").length === `+quoteInt(min(50, from(1))))
	b.run(chromedp.NavigateBack())
	b.until("the overview", find(w, "overview").shown)
	running := 0
	for _, err := range w.api.Experiments(t.Context(), demoProject, client.ExperimentQuery{Status: "running"}) {
		if err != nil {
			t.Fatal(err)
		}
		running++
	}
	b.until("the running experiments", `document.querySelector("[aria-labelledby=running] li")`)
	if got := len(b.texts("[aria-labelledby=running] li")); got != running || running == 0 {
		t.Errorf("%d running experiments, want %d", got, running)
	}

	// The first week is longer than the period. Its bar has the entries of the period alone, as does the list that it opens.
	begin := time.Date(y, m, d-20, 0, 0, 0, 0, location)
	for begin.Weekday() != time.Thursday {
		begin = begin.AddDate(0, 0, 1)
	}
	part := 0
	for _, at := range created {
		if !at.Before(begin) && at.Before(begin.AddDate(0, 0, 4)) {
			part++
		}
	}
	b.open(overview + "?from=" + begin.Format(time.DateOnly) + "&to=" + begin.AddDate(0, 0, 100).Format(time.DateOnly))
	b.until("a part of a week", `document.querySelector(".chart svg a.partial")?.getAttribute("aria-label").endsWith(": `+quoteInt(part)+`")`)
	eval[bool](b, `document.querySelector(".chart svg a.partial").dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }))`)
	b.until("its entries", `document.querySelector("[data-total='`+quoteInt(part)+`']")`)
	b.open(overview)
	b.until("the overview again", find(w, "overview").shown)

	// A count that takes too long says how to ask for less.
	b.breaks(&fault{part: "/entries-overview", serve: refusal(422, "question_too_large")})
	b.clickText("90 days")
	b.shows("This takes too long to count")
	b.shows("Choose a shorter period, or one embeddable.")
	b.breaks()

	// A day that is not over is compared with the same hours.
	now, start := time.Date(y, m, d, 0, 30, 0, 0, location), time.Date(y, m, d-29, 0, 0, 0, 0, location)
	before := time.Date(y, m, d-59, 0, 0, 0, 0, location)
	earlier = 0
	for _, at := range created {
		if !at.Before(before) && at.Before(before.Add(now.Sub(start))) {
			earlier++
		}
	}
	b.run(b.script(fmt.Sprintf(`Date.now = () => %d`, now.UnixMilli())))
	b.open(overview)
	b.until("the change", `document.querySelector("[data-figure=entries] + span")?.innerText.includes(`+quote(fmt.Sprintf("%.1f %% against", 100*math.Abs(float64(total-earlier))/float64(earlier)))+`)`)
}

// TestLongOverviewIsLive checks that an open page wakes up with the first entry, and follows stored and removed entries. An
// entry with a clock that is far off changes no period.
func TestLongOverviewIsLive(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project = "pr_live"
	key := w.newProject(t, project, "Live", "em_live")
	b := newTab(t, w)
	b.signIn(project, key, at(project, "connect"))
	b.until("it waits", `document.querySelector("[data-newest='']")`)
	b.clickText("Overview")
	b.state("empty")
	funnel := b.another(at(project, "funnel/em_live"))
	funnel.state("empty")
	w.send(t, "entries", newEntry(project, "em_live", "en_1", time.Now().Add(-time.Minute), `{"name":"Ada"}`))
	total := func(n int) string {
		return `document.querySelector("[data-figure=entries]")?.innerText === "` + quoteInt(n) + `" && document.querySelectorAll(".chart svg a").length === 30`
	}
	b.until("one entry", total(1))
	funnel.run(page.BringToFront()) // until then, nobody sees it, and it pauses
	funnel.until("one entry", `document.querySelector("[data-figure=entries]")?.innerText === "1"`)
	b.run(page.BringToFront())
	b.until("it is live", `document.querySelector("[data-live=live]")`)
	w.send(t, "entries", newEntry(project, "em_live", "en_2", time.Now(), `{"name":"Grace"}`),
		newEntry(project, "em_live", "en_far", time.Date(9999, 12, 31, 23, 30, 0, 0, time.UTC), `{"name":"Far"}`))
	b.until("two entries", total(2)+` && document.querySelector("[aria-labelledby=latest]").innerText.includes("Grace")`)
	b.shows("31 Dec 9999, 23:30 UTC")
	if _, err := w.admin.EraseEntry(t.Context(), project, "en_2"); err != nil {
		t.Fatal(err)
	}
	b.until("one entry again", total(1)+` && !document.querySelector("main").innerText.includes("Grace")`)

	// The feed fails, the page says so, and then the feed continues from its cursor.
	b.breaks(&fault{part: "entries-changes", serve: refusal(503, "service_unavailable", "Retry-After", "1")})
	w.send(t, "entries", newEntry(project, "em_live", "en_3", time.Now(), "{}")) // ends the long poll
	b.until("it says so", `document.querySelector("[data-live=broken]")`)
	b.breaks()
	b.until("two entries", total(2)+` && document.querySelector("[data-live=live]")`)

	// A tab that nobody sees pauses, and catches up when it is seen.
	see := func(hidden bool) {
		t.Helper()
		eval[bool](b, fmt.Sprintf(`Object.defineProperty(document, "hidden", { value: %t, configurable: true }) && document.dispatchEvent(new Event("visibilitychange"))`, hidden))
	}
	see(true)
	b.until("it pauses", `document.querySelector("[data-live=connecting]")`)
	w.send(t, "entries", newEntry(project, "em_live", "en_hidden", time.Now(), "{}"))
	if eval[bool](b, total(3)) {
		t.Error("a hidden tab follows changes")
	}
	see(false)
	b.until("three entries", total(3)+` && document.querySelector("[data-live=live]")`)

	// Nor does one of a year that is possible stretch the chart.
	w.send(t, "entries", newEntry(project, "em_live", "en_2099", time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC), "{}"))
	b.clickText("All time")
	b.until("all five", `document.querySelector("[data-figure=entries]")?.innerText === "5" && document.querySelectorAll(".chart svg a").length < 5`)
}

// TestLongHours checks that the page shows up to three days by hours of the time zone. The arrow keys and a touch say the
// numbers of a bar.
func TestLongHours(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project = "pr_hours"
	key := w.newProject(t, project, "Hours", "em_hours")
	for i, hour := range []int{22, 22, 34, 10} { // of 30 September in UTC: 00:00 and 12:00 of 1 October in Berlin, and 12:00 of the day before
		w.send(t, "entries", newEntry(project, "em_hours", fmt.Sprint("en_", i), time.Date(2026, 9, 30, hour, 20*i, 0, 0, time.UTC), `{}`))
	}
	b := newTab(t, w)
	b.signIn(project, key, at(project, "overview?from=2026-10-01&to=2026-10-01"))
	b.until("a bar for each hour", `document.querySelector("#chart")?.innerText === "Entries an hour" && document.querySelectorAll(".chart a").length === 24`)
	b.shows("+2 against") // 200 % of one entry
	said := func(want string) {
		t.Helper()
		b.until(want, `document.querySelector(".said").innerText === `+quote(want))
	}
	b.run(chromedp.Evaluate(`document.querySelector(".chart svg").focus()`, nil))
	b.press(kb.ArrowRight)
	said("1 Oct, 00:00: 2 entries, 0 completed (0.0 %)")
	b.run(chromedp.Evaluate(`document.querySelector(".chart svg").blur()`, nil))
	said("")
	b.open(at(project, "overview?from=2026-09-20&to=2026-10-01"))
	b.until("a bar for each day", `document.querySelectorAll(".chart a").length === 12`)
	touch := chromedp.Evaluate(`(() => {
		const bar = [...document.querySelectorAll(".chart a")].at(-1);
		bar.dispatchEvent(new PointerEvent("pointerenter", { pointerType: "touch" }));
		bar.querySelector(".behind").dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
	})()`, nil)
	b.run(touch)
	said("1 Oct: 3 entries, 0 completed (0.0 %)")
	b.run(touch)
	b.until("the entries of the bar", `location.pathname.endsWith("/entries") && document.querySelectorAll("tr[data-entry]").length === 3`)
}
