package consoletest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// pageView returns the event of a page view.
func pageView(project, embeddable, entry string, at time.Time, version, page, pages int) record {
	return record{"project_id": project, "entry_id": entry, "embeddable_id": embeddable, "contact_id": "co_1", "group_id": "gr_1", "embeddable_version_number": version,
		"timestamp": at.UTC().Format(time.RFC3339), "event_type": "flowpage.viewed", "page_id": "p", "page_key": "p", "page_index": page, "total_pages": pages, "custom_event_name": nil, "custom_event_props": nil, "url": nil}
}

// TestLongNumbersOpenTheirEntries clicks on figures of a period of the calendar. Each opens the list of exactly the entries that it
// counts, and the period stays.
func TestLongNumbersOpenTheirEntries(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	now := time.Date(2026, 9, 16, 10, 0, 0, 0, time.UTC)
	b.run(b.script(fmt.Sprintf(`Date.now = () => %d`, now.UnixMilli())))
	b.signIn(demoProject, w.APIKey, at(demoProject, "overview"))
	b.until("the overview", find(w, "overview").shown)
	for key, want := range map[string]string{"w": "7 Sept 2026 to 13 Sept 2026", "l": "1 Aug 2026 to 31 Aug 2026", "m": "1 Sept 2026 to 16 Sept 2026"} {
		b.press(key)
		b.shows(want)
	}
	b.clickText("Last week")
	b.until("last week", `document.querySelector("[data-figure=entries] + span")?.innerText.includes("against the week before") && !document.querySelector("[data-stale]") && location.search.includes("days=last-week")`)
	b.clickText("Embeddables")
	b.shows("7 Sept 2026 to 13 Sept 2026")
	b.clickText("What would solar save you?")
	b.until("the funnel", find(w, "funnel").shown)
	for _, figure := range []string{"entries", "completed", "open"} {
		want := b.number("[data-figure=" + figure + "]")
		b.click("[data-figure=" + figure + "] a")
		b.until(figure, fmt.Sprintf(`document.querySelector("[data-total='%d']") && document.querySelectorAll("tr[data-entry]").length === %d`, want, min(50, want)))
		if !strings.Contains(b.address(), "days=last-week") {
			t.Errorf("the address is %s", b.address())
		}
		b.run(chromedp.NavigateBack())
		b.until("the funnel again", find(w, "funnel").shown)
	}
}

// TestLongAnswersDropsAndVersionsOpenTheirEntries clicks on the numbers of an answer, of a drop-off and of a version. The versions
// end at different pages. The filters of each list are chips.
func TestLongAnswersDropsAndVersionsOpenTheirEntries(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project, embeddable = "pr_lists", "em_lists"
	key := w.newProject(t, project, "Lists", "")
	w.send(t, "embeddables", record{"embeddable_id": embeddable, "title": "A short questionnaire", "group_id": "gr_1", "project_id": project, "json_string_prod": `{"name":"size","label":"How large?"}`})
	var entries, events []record
	for i := range 130 {
		id, version := fmt.Sprint("en_", i), 1+i%2
		entries = append(entries, newEntry(project, embeddable, id, demoEnd, fmt.Sprintf(`{"size":%s}`, []string{`"100"`, `100`, `["a \"b\"",100]`}[i%3])))
		for page := range 1 + i/2%3 {
			events = append(events, pageView(project, embeddable, id, demoEnd.Add(time.Duration(page)*time.Second), version, page, 2+version))
		}
	}
	w.send(t, "entries", entries...)
	w.send(t, "events", events...)
	b := newTab(t, w)
	b.signIn(project, key, at(project, "overview?days=30"))
	for _, tt := range []struct {
		page, shown, number string
		want                int
		chip                string
	}{
		{"answers/", `document.querySelector("[data-answered='130']")`, ".values tbody tr:nth-child(1) a", 86, "How large? 100"},
		{"answers/", `document.querySelector("[data-answered='130']")`, ".values tbody tr:nth-child(2) a", 44, `How large? "100"`},
		{"answers/", `document.querySelector("[data-answered='130']")`, ".values tbody tr:nth-child(3) a", 43, `How large? a "b"`},
		{"funnel/", find(w, "funnel").shown, "table.funnel tbody tr:nth-child(2) .number a", 44, "furthest page 2"},
		{"funnel/", find(w, "funnel").shown, "table.funnel tbody tr:nth-child(3) .number a", 21, "furthest page 3"},
		{"funnel/", find(w, "funnel").shown, "table.versions tbody tr:nth-child(1) a", 65, "version 2"},
	} {
		b.open(at(project, tt.page+embeddable+"?days=30"))
		b.until(tt.page, tt.shown)
		if got := b.number(tt.number); got != tt.want {
			t.Errorf("%s of %s is %d, want %d", tt.number, tt.page, got, tt.want)
		}
		b.click(tt.number)
		b.until("the list "+tt.chip, fmt.Sprintf(`location.search.includes("days=30") && document.querySelectorAll("tr[data-entry]").length === %d`, min(tt.want, 50)))
		b.until("the chip "+tt.chip, `document.querySelectorAll(".chip").length === 1 && document.querySelector(".chip").innerText.startsWith(`+quote(tt.chip)+`)`)
		if tt.want > 50 {
			b.until("how many there are", fmt.Sprintf(`document.querySelector("[data-total='%d']")`, tt.want))
			b.clickText("Next")
		}
		b.until("the end of the list "+tt.chip, fmt.Sprintf(`document.querySelector("[data-total='%d']") && document.querySelectorAll("tr[data-entry]").length === %d && !document.querySelector("[data-stale], [rel=next]")`, tt.want, (tt.want-1)%50+1))
	}

	// The table of versions says how many left on a page.
	b.open(at(project, "funnel/"+embeddable+"?days=30"))
	b.until("the versions", find(w, "funnel").shown)
	b.click("table.versions tbody tr:nth-child(5) td a")
	b.until("the list of a page of a version", `document.querySelector("[data-total='22']") && document.querySelectorAll(".chip").length === 2`)

	// Of one version, each figure has a list. A filter that is removed shows more.
	b.open(at(project, "funnel/"+embeddable+"?days=30&version=2"))
	b.until("one version", `document.querySelector("[data-state=counted][data-entries='65']")`)
	b.click("table.funnel tbody tr:nth-child(1) .number a")
	b.until("its list", `document.querySelector("[data-total='22']") && document.querySelectorAll(".chip").length === 2`)
	b.click(".chip")
	b.until("of all versions", `document.querySelector("[data-total='44']") && document.querySelectorAll(".chip").length === 1`)

	// Filters that are added on one page are chips on all, and count the same entries.
	b.open(at(project, "funnel/"+embeddable+"?days=30"))
	b.until("all versions", `document.querySelector("[data-state=counted][data-entries='130']")`)
	b.clickText("Add filter")
	b.until("the questions", `[...document.querySelectorAll("dialog option")].some(e => e.value === "size" && e.innerText === "How large?")`)
	b.choose("Question", "size")
	b.choose("Answer", "100")
	b.choose("Furthest page", "1")
	const added = "days=30&answer=100&answer_key=size&furthest_page=1"
	b.until("the funnel", `document.querySelector("[data-state=counted][data-entries='22']") && document.querySelectorAll(".chip").length === 2`)
	for path, shown := range map[string]string{
		"answers/" + embeddable + "?":             `document.querySelector("[data-answered='22']")`,
		"overview?embeddable=" + embeddable + "&": `document.querySelector("[data-figure=entries]")?.innerText === "22"`, "entries?embeddable=" + embeddable + "&": `document.querySelector("[data-total='22']")`,
	} {
		b.open(at(project, path+added))
		b.until("22 at "+path, shown+` && document.querySelectorAll(".chip").length === 2`)
	}

	b.open(at(project, "entries?version=x&furthest_page=1&answer=Yes"))
	b.state("invalid")
	b.shows("furthest_page is of one embeddable.")
	b.shows("answer is “Yes”. It must be JSON")
}

// TestLongWrongClocks checks that the page of all time says which entries its chart leaves out. A funnel of one version names
// the version. The focus stays in the filters after a filter is removed.
func TestLongWrongClocks(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project, embeddable = "pr_clocks", "em_clocks"
	key := w.newProject(t, project, "Clocks", embeddable)
	w.send(t, "entries", newEntry(project, embeddable, "en_1", demoEnd, "{}"), newEntry(project, embeddable, "en_2", time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), "{}"), newEntry(project, embeddable, "en_3", time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC), "{}"))
	w.send(t, "events", pageView(project, embeddable, "en_1", demoEnd, 7, 0, 1))
	b := newTab(t, w)
	b.signIn(project, key, at(project, "overview?days=0"))
	b.shows("2 entries are not in the chart, because their clocks say a year before 2000 or a day after today.")
	b.open(at(project, "funnel/"+embeddable+"?days=0"))
	b.shows("All page views are of version 7.")
	b.open(at(project, "entries?contact=co_1&group=gr_1"))
	b.until("the chips", `document.querySelectorAll(".chip").length === 2`)
	b.click(".chip")
	b.until("one is gone, and the focus is on a filter", `document.querySelectorAll(".chip").length === 1 && document.activeElement.form?.ariaLabel === "Filters"`)
	b.clickText("Clear filters")
	b.until("all are gone, and the focus is on a filter", `document.querySelectorAll(".chip").length === 0 && document.activeElement.form?.ariaLabel === "Filters"`)
}

// TestLongVersionsAreCompared checks that 60 visitors of one version are not compared with 542 of another one without a word.
func TestLongVersionsAreCompared(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project, embeddable = "pr_compared", "em_compared"
	key := w.newProject(t, project, "Compared", embeddable)
	var entries, events []record
	for _, v := range []struct{ version, all, completed int }{{1, 542, 300}, {2, 60, 37}} {
		for i := range v.all {
			id, pages := fmt.Sprintf("en_%d_%d", v.version, i), 1
			if i >= v.completed {
				pages = 2
			}
			entries, events = append(entries, newEntry(project, embeddable, id, demoEnd, "{}")), append(events, pageView(project, embeddable, id, demoEnd, v.version, 0, pages))
		}
	}
	w.send(t, "entries", entries...)
	w.send(t, "events", events...)
	b := newTab(t, w)
	b.signIn(project, key, at(project, "funnel/"+embeddable))
	b.shows("It is too early to say which version is completed most often: version 2 with 61.7 % of 60 visitors leads, before version 1 with 55.4 % of 542 visitors, which may be chance.")
}

// TestLongLongTitle checks that no page with a title of 300 characters without a space scrolls sideways. A search takes Enter
// before its answer is there.
func TestLongLongTitle(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project, embeddable = "pr_longtitle", "em_longtitle"
	key := w.newProject(t, project, strings.Repeat("P", 300), "")
	long := strings.Repeat("W", 300)
	w.send(t, "embeddables", record{"embeddable_id": embeddable, "title": long, "group_id": "gr_1", "project_id": project, "json_string_prod": "{}"})
	w.send(t, "entries", newEntry(project, embeddable, "en_long", demoEnd, `{"q":"`+long+`"}`))
	w.send(t, "events", pageView(project, embeddable, "en_long", demoEnd, 1, 0, 1))
	w.send(t, "experiments", record{"project_id": project, "id": "ex_long", "experimentId": "ex_long", "flowId": embeddable, "name": long, "hypothesis": long, "impact_metrics": []string{long}, "no_impact_metrics": nil,
		"created_at": "2026-09-01T08:00:00Z", "updated_at": "2026-09-01T08:00:00Z", "observations": nil, "outcome": long, "attachments": nil, "variants": `{"a":{"name":"` + long + `","version_number":1}}`,
		"flow_ids": []string{embeddable}, "paused_showing_variant": nil, "winner_variant": "a", "status": "running"})
	source := axe(t)
	b := newTab(t, w)
	b.signIn(project, key, at(project, "overview"))
	for _, page := range []struct{ path, shown string }{
		{"overview", `document.querySelector("[aria-labelledby=running] li") && document.querySelector("[aria-labelledby=latest] li")`},
		{"entries", `document.querySelector("tr[data-entry]")`}, {"entries?embeddable=" + embeddable, `document.querySelector("tr[data-entry]")`},
		{"entries/en_long", `document.querySelector("[data-answers]") && document.querySelector("[data-events='1']")`}, {"contacts/co_1", `document.querySelector(".timeline li")`},
		{"funnel/" + embeddable, `document.querySelector("[data-state=counted]")`}, {"answers/" + embeddable, `document.querySelector("[data-answered]")`},
		{"embeddables", `document.querySelector("main tbody tr")`}, {"embeddables/" + embeddable, `document.querySelector("[aria-labelledby=versions]")`},
		{"experiments", `document.querySelector("main tbody tr")`}, {"experiments/ex_long", `document.querySelector("table.results td")`}, {"connect", find(w, "connect").shown},
	} {
		b.open(at(project, page.path))
		b.until(page.path, page.shown)
		for _, width := range []int64{390, 1280} {
			b.look(width, "light")
			b.fits(fmt.Sprint(page.path, " at ", width))
		}
		b.accessible(source, page.path)
	}
	b.breaks() // the browser logs that there is no entry of this id
	b.open(at(project, "overview"))
	b.until("the overview", `document.querySelector("[aria-labelledby=latest] li")`)
	b.press("/")
	b.until("the search", `document.activeElement.role === "combobox"`)
	b.run(chromedp.Evaluate(`document.activeElement.select()`, nil), chromedp.KeyEvent("en_long\r"))
	b.until("the entry", `location.pathname.endsWith("/entries/en_long") && document.querySelector("[data-answers]")`)
}

// TestLongCommands runs a command that a page offers for its view.
func TestLongCommands(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.show(w, find(w, "funnel"))
	b.clickText("This view as curl, lectern or CSV")
	b.until("commands", `document.querySelector(".commands code")`)
	commands := eval[[]string](b, `[...document.querySelectorAll(".commands code")].map(e => e.innerText)`)
	var curl string
	for _, command := range commands {
		if strings.HasPrefix(command, "curl ") && strings.Contains(command, "/entries-funnel?") && strings.Contains(command, "by=version") {
			curl = command
		}
	}
	if curl == "" || !strings.Contains(strings.Join(commands, "\n"), "lectern api '/projects/"+demoProject+"/entries-funnel?") {
		t.Fatalf("the commands are %q", commands)
	}
	run := exec.CommandContext(t.Context(), "sh", "-c", curl)
	run.Env = append(run.Environ(), "LECTERN_API_KEY="+w.APIKey)
	if out, err := run.Output(); err != nil || !strings.Contains(string(out), `"version_number":`) {
		t.Errorf("%s: %v, %.200s", curl, err, out)
	}
	b.open(at(demoProject, "answers/"+solar))
	b.until("the answers", find(w, "answers").shown)
	b.clickText("This view as curl, lectern or CSV")
	b.until("the question of both periods", `[...document.querySelectorAll(".commands code")].filter(e => e.innerText.startsWith("lectern api '/projects/`+demoProject+`/entries-answers?") && e.innerText.includes("values=50")).length === 2`)
	b.open(at(demoProject, "entries?embeddable="+solar+"&completed=true"))
	b.until("the entries", `document.querySelectorAll("tr[data-entry]").length === 50`)
	b.clickText("This view as curl, lectern or CSV")
	b.shows("lectern export entries --flatten -o csv --embeddable-id='" + solar + "' --completed='true' --sort='created_at' --direction='DESC' > entries.csv")
}
