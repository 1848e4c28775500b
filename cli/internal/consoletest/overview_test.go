package consoletest

import (
	"testing"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// TestOverview compares the figures of the overview with the API's entries.
func TestOverview(t *testing.T) {
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
	b.until("all is read", `document.querySelector("[data-figure=total]") && !document.querySelector("main").innerText.includes("read so far")`)
	if got, want := b.number("[data-figure=total]"), from(30); got != want {
		t.Errorf("%d entries in 30 days, want %d", got, want)
	}
	if got, want := b.number("[data-figure=today]"), from(1); got != want {
		t.Errorf("%d entries on the last day, want %d", got, want)
	}
	b.clickText("As a table")
	if rows := b.texts("figure tbody tr"); len(rows) != 30 {
		t.Errorf("%d days in the table", len(rows))
	}
	sum := eval[int](b, `[...document.querySelectorAll("figure tbody td")].reduce((n, e) => n + Number(e.innerText.replaceAll(",", "")), 0)`)
	if want := from(30); sum != want {
		t.Errorf("the table has %d entries, want %d", sum, want)
	}
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
}

// TestOverviewIsLive checks that the open page follows stored and removed entries.
func TestOverviewIsLive(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project = "pr_live"
	key := w.newProject(t, project, "Live", "em_live")
	w.send(t, "entries", newEntry(project, "em_live", "en_1", time.Now().Add(-time.Minute), "{}"))

	b := newTab(t, w)
	b.signIn(project, key, "/console/p/"+project+"/overview")
	b.until("it is live", `document.querySelector("[data-live=live]")`)
	total := func(n string) string {
		return `document.querySelector("[data-figure=total]").innerText === "` + n + `" && document.querySelector("[data-figure=today]").innerText === "` + n + `"`
	}
	b.until("one entry", total("1"))
	w.send(t, "entries", newEntry(project, "em_live", "en_2", time.Now(), "{}"))
	b.until("two entries", total("2")+` && document.querySelector("[aria-labelledby=latest] li").innerText.startsWith("en_2")`)
	if _, err := w.admin.EraseEntry(t.Context(), project, "en_2"); err != nil {
		t.Fatal(err)
	}
	b.until("one entry again", total("1")+` && !document.querySelector("main").innerText.includes("en_2")`)

	// The feed fails, the page says so, and then the feed continues from its cursor.
	b.breaks(&fault{part: "entries-changes", serve: refusal(503, "service_unavailable", "Retry-After", "1")})
	w.send(t, "entries", newEntry(project, "em_live", "en_3", time.Now(), "{}")) // ends the long poll
	b.until("it says so", `document.querySelector("[data-live=broken]")`)
	b.breaks()
	w.send(t, "entries", newEntry(project, "em_live", "en_4", time.Now(), "{}"))
	b.until("three entries", total("3")+` && document.querySelector("[data-live=live]")`)
}
