package consoletest

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
)

// onBrowser runs an action on the browser instead of on the page.
func (b *tab) onBrowser(do func(contextID cdp.BrowserContextID) chromedp.Action) {
	b.Helper()
	c := chromedp.FromContext(b.ctx)
	if err := do(b.contextID).Do(cdp.WithExecutor(b.ctx, c.Browser)); err != nil {
		b.Fatal(err)
	}
}

// TestLongVersions chooses two known definitions in the page and checks their comparison.
func TestLongVersions(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project, embeddable = "pr_versions", "em_versions"
	key := w.newProject(t, project, "Versions", embeddable)
	version := func(number int, definition string) record {
		return record{"embeddable_id": embeddable, "project_id": project, "version_number": number, "saved_at": "2026-09-0" + string(rune('0'+number)) + "T08:00:00Z", "json_string": definition}
	}
	w.send(t, "embeddable-versions",
		version(1, `{"pages":["a","b"],"title":"One","same":{"x":1,"y":2,"z":3,"u":4,"v":5,"w":6,"t":7}}`),
		version(2, `{"pages":["a","b","c"],"title":"Two","same":{"x":1,"y":2,"z":3,"u":4,"v":5,"w":6,"t":7}}`),
		version(3, `{ "pages": ["a","b","c"], "title":"Two","same":{"x":1,"y":2,"z":3,"u":4,"v":5,"w":6,"t":7}}`),
		// JavaScript reads these two alike.
		version(4, `{"n":10000000000000000001,"d":1,"d":2}`), version(5, `{"n":10000000000000000002,"d":2}`))
	var many []record
	for number := 6; number <= 5000; number++ {
		v := version(1, "{}")
		v["version_number"], v["embeddable_id"] = number, "em_many"
		many = append(many, v)
	}
	w.send(t, "embeddables", record{"embeddable_id": "em_many", "title": "Many versions", "group_id": "gr_1", "project_id": project, "json_string_prod": "{}"})
	w.send(t, "embeddable-versions", many...)
	b := newTab(t, w)
	b.signIn(project, key, at(project, "embeddables"))
	b.clickText("A short questionnaire")
	b.clickText("Versions")
	changes := func() []string { return trimmed(b.texts(".line.added .text, .line.removed .text")) }
	b.until("the last two versions", `document.querySelector("[data-added='1'][data-removed='2']")`)
	if diff := cmp.Diff([]string{`"n": 10000000000000000001,`, `"d": 1,`, `"n": 10000000000000000002,`}, changes()); diff != "" {
		t.Error(diff)
	}
	b.choose("Compare", "2")
	b.choose("with", "3")
	b.shows("The two are the same but for spaces between values.")
	b.choose("Compare", "1")
	b.choose("with", "2")
	b.until("two lines and one", `document.querySelector("[data-added='3'][data-removed='2']")`)
	if diff := cmp.Diff([]string{`"b"`, `"b",`, `"c"`, `"title": "One",`, `"title": "Two",`}, changes()); diff != "" {
		t.Error(diff)
	}
	if got, want := b.address(), at(project, "embeddables/"+embeddable+"?compare=1&with=2"); got != want {
		t.Errorf("the address is %s, want %s", got, want)
	}
	before := len(b.texts(".line"))
	b.click(".fold")
	b.until("the lines that are the same", `document.querySelectorAll(".line").length > `+quoteInt(before))
	b.run(chromedp.Reload())
	b.until("the same comparison", `document.querySelector("[data-added='3'][data-removed='2']")`)
	b.open(at(project, "embeddables/"+embeddable+"?compare=1&with=77"))
	b.breaks() // no fault, but the browser logs the 404
	b.state("404")
	b.breaks()
	b.open(at(project, "embeddables/em_many"))
	b.until("a page of versions", `document.querySelectorAll("[aria-labelledby=versions] tbody tr").length === 50 && document.querySelectorAll("main option").length < 200`)
	b.clickText("Show 50 more")
	b.until("two pages", `document.querySelectorAll("[aria-labelledby=versions] tbody tr").length === 100`)
}

func trimmed(lines []string) []string {
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// TestLongExperiments checks the statuses of an experiment over time, and the filter by status.
func TestLongExperiments(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project = "pr_experiments"
	key := w.newProject(t, project, "Experiments", "em_1")
	names := map[string]string{"ex_1": "Name of ex_1", "ex_2": ""}
	experiment := func(id, status, updated string) record {
		return record{"project_id": project, "id": id, "experimentId": id, "flowId": "em_1", "name": names[id], "hypothesis": "Shorter is better.",
			"impact_metrics": []string{"start_rate"}, "no_impact_metrics": nil, "created_at": "2026-09-01T08:00:00Z", "updated_at": updated, "observations": nil,
			"outcome": "It was.", "attachments": `[{"name":"Result","url":"javascript:alert(1)"}]`, "variants": `{"a":{"name":"First","version_number":1},"b":{"name":"Second","version_number":2}}`,
			"flow_ids": []string{"em_1"}, "paused_showing_variant": nil, "winner_variant": "b", "status": status}
	}
	w.send(t, "experiments", experiment("ex_1", "draft", "2026-09-01T08:00:00Z"))
	w.send(t, "experiments", experiment("ex_1", "running", "2026-09-02T08:00:00Z"))
	w.send(t, "experiments", experiment("ex_1", "winner_picked", "2026-09-05T09:30:00Z"), experiment("ex_2", "draft", "2026-09-01T08:00:00Z"))

	b := newTab(t, w)
	b.signIn(project, key, at(project, "experiments"))
	b.until("both", `document.querySelectorAll("main tbody tr").length === 2`)
	b.shows("Second won: It was.")
	b.clickText("Draft 1")
	b.until("one", `document.querySelectorAll("main tbody tr").length === 1`)
	if got, want := b.address(), at(project, "experiments?status=draft"); got != want {
		t.Errorf("the address is %s, want %s", got, want)
	}
	b.clickText("ex_2") // it has no name
	b.until("the nameless one", `document.querySelector("h1").innerText === "ex_2" && document.querySelector(".history li")`)
	b.clickText("Experiments")
	b.clickText("Name of ex_1")
	b.until("its history", `document.querySelectorAll(".history li").length === 3`)
	var history []string
	for _, line := range b.texts(".history li") {
		history = append(history, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"Draft 1 Sept 2026, 10:00 for 1 d", "Running 2 Sept 2026, 10:00 for 3 d 1 h", "Winner picked since 5 Sept 2026, 11:30"}
	if diff := cmp.Diff(want, history); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Second b Winner", "First a"}, trimmed(b.texts("table.variants tbody th"))); diff != "" {
		t.Error(diff)
	}
	if winner := b.text("[data-winner]"); !strings.Contains(winner, "Second: It was.") {
		t.Errorf("the winner: %q", winner)
	}
	b.until("a variant's funnel while it ran", `document.querySelector("table.results tbody a")?.getAttribute("href") === `+quote(at(project, "funnel/em_1?version=1&from=2026-09-02&to=2026-09-05")))
	for _, text := range []string{"Shorter is better.", "It was.", "javascript:alert(1)"} {
		b.shows(text)
	}
	if shared := eval[int](b, `document.querySelectorAll("[data-shared]").length`); shared != 0 {
		t.Error("variants with versions of their own are told to share one")
	}
	if links := eval[int](b, `document.querySelectorAll("a[href^='javascript']").length`); links > 0 {
		t.Error("an address of the data is a link")
	}

	// Two variants with one version have no figures. Others count the visitors of all flows.
	view := func(id, flow string, version int) record {
		return record{"project_id": project, "entry_id": id, "embeddable_id": flow, "contact_id": "co", "group_id": "g", "embeddable_version_number": version, "timestamp": "2026-09-02T09:00:00Z",
			"page_id": "p", "page_key": "p", "page_index": 0, "max_page_id": nil, "max_page_key": nil, "max_page_index": nil, "total_pages": 1, "event_type": "flowpage.viewed", "view_type": "flowpage",
			"custom_event_name": nil, "custom_event_props": nil}
	}
	entry := func(id, flow string) record {
		return newEntry(project, flow, id, time.Date(2026, 9, 2, 9, 0, 0, 0, time.UTC), "{}")
	}
	w.send(t, "entries", entry("en_1", "em_1"), entry("en_2", "em_1"), entry("en_3", "em_2"))
	w.send(t, "events", view("en_1", "em_1", 1), view("en_2", "em_1", 2), view("en_3", "em_2", 2))
	ex := experiment("ex_3", "running", "2026-09-02T08:00:00Z")
	ex["variants"], ex["flow_ids"] = `{"a":{"name":"First","version_number":1},"b":{"name":"Second","version_number":1},"c":{"name":"Third","version_number":2}}`, []string{"em_1", "em_2"}
	w.send(t, "experiments", ex)
	b.open(at(project, "experiments/ex_3"))
	b.until("figures", `document.querySelector("[data-shared]") && document.querySelector("table.results td")`)
	if diff := cmp.Diff([]string{"2", "2", "100.0 %"}, trimmed(b.texts("table.results td"))); diff != "" {
		t.Error(diff)
	}

	b.open(at(project, "experiments/ex_1"))
	b.click("table.results tbody tr:nth-child(1) td:nth-child(2) a")
	b.until("the entries of a variant while it ran", `document.querySelectorAll("tr[data-entry]").length === 1 && document.querySelector("[data-total='1']") && `+shownAddress+` === `+quote(at(project, "entries?embeddable=em_1&version=1&from=2026-09-02&to=2026-09-05")))

	// The page says that a variant is better once the interval excludes zero. A variant may also have an embeddable of its own.
	var entries, events []record
	add := func(name, flow string, all, completed int) {
		for i := range all {
			id := fmt.Sprintf("en_%s_%d", name, i)
			view := view(id, flow, 9)
			if i >= completed {
				view["total_pages"] = 2
			}
			entries, events = append(entries, entry(id, flow)), append(events, view)
		}
	}
	add("control", "em_control", 150, 60)
	add("better", "em_better", 150, 90)
	add("early", "em_early", 99, 99)
	w.send(t, "entries", entries...)
	w.send(t, "events", events...)
	ex = experiment("ex_4", "running", "2026-09-02T08:00:00Z")
	ex["variants"], ex["winner_variant"], ex["outcome"] = `{"b":{"name":"Better","flowId":"em_better"},"control":{"name":"As it is","flowId":"em_control"},"c":{"name":"Early","flowId":"em_early"}}`, nil, nil
	w.send(t, "experiments", ex)
	b.open(at(project, "experiments/ex_4"))
	b.until("verdicts", `document.querySelectorAll("[data-verdict]").length === 2`)
	const verdict = "“Better” is better: its completion rate is 20.0 points higher than that of “As it is”."
	b.shows(verdict)
	if metric, want := b.text("[data-metric]"), "Compared by the completion rate, which entries can measure. They cannot measure start_rate, which the experiment should change."; metric != want {
		t.Errorf("the metric: %q, want %q", metric, want)
	}
	var results []string
	for _, row := range b.texts("table.results tbody tr") {
		results = append(results, strings.Join(strings.Fields(row), " "))
	}
	if diff := cmp.Diff([]string{"As it is 150 60 40.0 % –", "Better 150 90 60.0 % +20.0 points (+8.7 to +30.6) Better", "Early 99 99 100.0 % +60.0 points (+51.2 to +67.5) Too early to say"}, results); diff != "" {
		t.Error(diff)
	}
	for column, want := range map[int]int{2: 150, 3: 90} {
		b.click(fmt.Sprintf("table.results tr[data-variant=b] td:nth-child(%d) a", column))
		b.until("the entries of a variant", fmt.Sprintf(`document.querySelector("[data-total='%d']") && location.search.includes("embeddable=em_better") && location.search.includes("from=2026-09-02")`, want))
		b.run(chromedp.NavigateBack())
		b.until("the verdicts again", `document.querySelectorAll("[data-verdict]").length === 2`)
	}
	b.look(390, "light")
	if hidden := eval[[]string](b, `[...document.querySelectorAll("table.results tbody td:not(.control .against)")].filter(e => e.getBoundingClientRect().right > innerWidth || !e.checkVisibility()).map(e => e.innerText)`); len(hidden) > 0 {
		t.Errorf("at 390 px these are not seen: %q", hidden)
	}

	// The sentence about a finished experiment judges the decision.
	ex["variants"] = `{"b":{"name":"Better","flowId":"em_better"},"control":{"name":"As it is","flowId":"em_control"}}`
	for winner, want := range map[string]string{"b": "“Better” was chosen. Its completion rate is 20.0 points higher than that of “As it is”.", "control": "“As it is” was chosen. The completion rate of “Better” is 20.0 points higher."} {
		ex["id"], ex["experimentId"], ex["winner_variant"] = "ex_"+winner, "ex_"+winner, winner
		w.send(t, "experiments", ex)
		b.open(at(project, "experiments/ex_"+winner))
		b.shows(want)
	}
	ex["variants"] = `{"c":{"name":"Early","flowId":"em_early"},"control":{"name":"As it is","flowId":"em_control"}}`
	for id, tt := range map[string]struct {
		winner any
		want   string
	}{
		"ex_chance": {"c", "“Early” was chosen. Its completion rate is 60.0 points higher than that of “As it is”, which may be chance."},
		"ex_nobody": {nil, "The experiment ended without a variant that is surely better than “As it is”."},
	} {
		ex["id"], ex["experimentId"], ex["winner_variant"], ex["status"] = id, id, tt.winner, "completed"
		w.send(t, "experiments", ex)
		b.open(at(project, "experiments/"+id))
		b.shows(tt.want)
		if got := b.text("[data-verdict]"); got != "May be chance" {
			t.Errorf("%s: the row says %q", id, got)
		}
	}

	// The list says of running experiments what the figures show.
	b.open(at(project, "experiments?status=running"))
	b.until("the verdict", `document.querySelector("main tbody [data-conclusion]")?.innerText === `+quote(verdict))
}

// TestLongConnect copies the request on the page and runs it.
func TestLongConnect(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		b.onBrowser(func(contextID cdp.BrowserContextID) chromedp.Action {
			return browser.SetPermission(&browser.PermissionDescriptor{Name: name}, browser.PermissionSettingGranted).WithBrowserContextID(contextID)
		})
	}
	b.signIn(demoProject, w.APIKey, at(demoProject, "connect"))
	b.shows("lectern keys mint --project='" + demoProject + "' --name=NAME")
	b.until("the limits", `document.querySelector("[data-figure=remaining]")`)
	answer, err := http.DefaultClient.Do(b.request("/projects/" + demoProject + "/embeddables?limit=1"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b.shows("RateLimit-Policy: " + answer.Header.Get("RateLimit-Policy"))
	for _, language := range []string{"Go", "TypeScript", "curl"} {
		b.clickText(language)
		sample := b.text(".sample pre.code")
		if !strings.Contains(sample, "LECTERN_API_KEY") || !strings.Contains(sample, demoProject) || !strings.Contains(sample, b.URL) {
			t.Errorf("%s: %s", language, sample)
		}
	}
	b.run(chromedp.Evaluate(`document.hasFocus() || window.focus()`, nil))
	b.clickText("Copy with the key")
	b.shows("Copied")
	if command := eval[string](b, `navigator.clipboard.readText()`); !strings.Contains(command, w.APIKey) {
		t.Errorf("copied: %s", command)
	}
	b.click(".sample button")
	b.until("the other", `document.querySelector(".sample button").innerText === "Copied"`)
	command := eval[string](b, `navigator.clipboard.readText()`)
	if strings.Contains(command, w.APIKey[:6]) {
		t.Errorf("copied a part of the key: %s", command)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		return
	}
	run := exec.CommandContext(t.Context(), "sh", "-c", command)
	run.Env = append(os.Environ(), "LECTERN_API_KEY="+w.APIKey)
	out, err := run.Output()
	if lines := strings.Count(string(out), "\n"); err != nil || lines != 10_000 {
		t.Errorf("the copied request gave %d entries, %v", lines, err)
	}

	const project = "pr_connect"
	other := newTab(t, w)
	other.signIn(project, w.newProject(t, project, "Connect", ""), at(project, "connect"))
	other.until("it waits", `document.querySelector("[data-newest='']")`)
	run = exec.CommandContext(t.Context(), "sh", "-c", other.text(`[aria-label="The command that sends an entry"]`))
	run.Env = append(os.Environ(), "LECTERN_INGEST_API_KEY="+w.IngestAPIKey, "LECTERN_INTERNAL_URL="+w.InternalURL)
	if out, err := run.Output(); err != nil {
		t.Errorf("%s, %v", out, err)
	}
	other.until("it came", `document.querySelector("[data-newest=my-first-entry]")`)
	// The entry's embeddable has no stored definition. It is listed by its id.
	for _, page := range []string{"overview", "embeddables"} {
		other.open(at(project, page))
		other.until("the embeddable in "+page, `document.querySelector("[aria-label='Table of embeddables'] tbody tr")?.innerText.match(/^my-form\s+1\s/)`)
	}
}

// request returns a request with the demo's key.
func (b *tab) request(path string) *http.Request {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.URL+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("X-Api-Key", b.keys[0])
	return r
}
