package consoletest

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

func quoteInt(n int) string { return strconv.Itoa(n) }

// entryIDs returns the ids of the entries of a list, in its order.
func (w *world) entryIDs(t *testing.T, q client.EntryQuery) []string {
	t.Helper()
	var ids []string
	for entry, err := range w.api.Entries(t.Context(), demoProject, q) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, entry.EntryID)
	}
	return ids
}

// rows waits until the table of entries has n rows, and all is read.
func (b *tab) rows(n int) {
	b.Helper()
	b.until(fmt.Sprint(n, " rows"), `document.querySelectorAll("tr[data-entry]").length === `+quoteInt(n)+` && !document.querySelector("[data-stale]")`)
}

// ids waits until the table shows exactly these entries.
func (b *tab) ids(what string, want []string) {
	b.Helper()
	b.until(what, `[...document.querySelectorAll("tr[data-entry]")].map(e => e.dataset.entry).join() === `+quote(strings.Join(want, ","))+` && !document.querySelector("[data-stale]")`)
}

// TestLongEntries filters and sorts the table, turns its pages, and compares it with the API's lists.
func TestLongEntries(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.signIn(demoProject, w.APIKey, at(demoProject, "entries"))
	all := w.entryIDs(t, client.EntryQuery{Sort: "created_at"})
	b.ids("the newest first", all[:50])
	b.clickText("Next")
	b.ids("the second page", all[50:100])
	b.clickText("Next")
	b.ids("the third page", all[100:150])
	b.run(chromedp.Reload()) // which forgets where the page begins
	b.ids("the third page again", all[100:150])
	b.clickText("Previous")
	b.ids("the second page again", all[50:100])

	b.choose("Embeddable", solar)
	b.ids("the newest of an embeddable", w.entryIDs(t, client.EntryQuery{Sort: "created_at", EmbeddableID: solar})[:50])
	if got, want := b.address(), at(demoProject, "entries?embeddable="+solar); got != want {
		t.Errorf("the address is %s, want %s", got, want)
	}
	b.until("its most frequent answers", `document.querySelectorAll("main thead th").length === 6`)
	berlin, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	b.open(at(demoProject, "entries?embeddable="+solar+"&from=2026-09-01&to=2026-09-03"))
	inPeriod := w.entryIDs(t, client.EntryQuery{
		EmbeddableID: solar, Sort: "created_at", Direction: client.Ascending,
		CreatedAfter:  time.Date(2026, 9, 1, 0, 0, 0, 0, berlin).Add(-time.Microsecond),
		CreatedBefore: time.Date(2026, 9, 4, 0, 0, 0, 0, berlin),
	})
	if len(inPeriod) < 50 || len(inPeriod) > 1000 {
		t.Fatalf("%d entries in the period", len(inPeriod))
	}
	b.until("how many there are", `document.querySelector("[data-total='`+quoteInt(len(inPeriod))+`']")`)
	b.choose("Order", "oldest")
	b.ids("the oldest first", inPeriod[:50])
	for _, filter := range []string{"sort=oldest", "from=2026-09-01"} {
		if !strings.Contains(b.address(), filter) {
			t.Errorf("the address %s has no %s", b.address(), filter)
		}
	}

	hasColumn := func(name string) string {
		return `[...document.querySelectorAll("main thead th")].some(e => e.innerText === ` + quote(name) + `)`
	}
	b.clickText("Columns")
	answer := b.text("dialog li:nth-child(6) bdi")
	b.click("dialog li:nth-child(6) input")
	b.until("the column", hasColumn(answer))
	b.clickText("Done")
	b.run(chromedp.Reload())
	b.until("the column stays", hasColumn(answer))
	b.clickText("Clear filters")
	b.ids("all again", all[:50])

	b.open(at(demoProject, "entries?from=yesterday&sort=size"))
	b.state("invalid")
	b.shows("from is “yesterday”")
	b.clickText("Show all entries")
	b.rows(50)
}

// TestLongSearch searches for parts of answers and for ids in the one field of the entries page.
func TestLongSearch(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project = "pr_search"
	key := w.newProject(t, project, "Search", "em_search")
	for i, data := range []string{`{"email":"Ada@example.org","name":"Ada Lovelace"}`, `{"email":"grace@example.org","phone":"+49 30 1234567"}`, `{"name":"Alan","age":41}`} {
		w.send(t, "entries", newEntry(project, "em_search", fmt.Sprint("en_", i), demoEnd.AddDate(0, 0, -i), data))
	}
	b := newTab(t, w)
	b.signIn(project, key, at(project, "entries"))
	b.rows(3)
	b.breaks() // the browser logs that there is no entry of this id
	search := func(text string) {
		t.Helper()
		b.run(chromedp.Focus("input[name=search]", chromedp.ByQuery), chromedp.Evaluate(`document.activeElement.select()`, nil), chromedp.KeyEvent(text+"\r"))
	}
	for _, tt := range []struct {
		text string
		want []string
	}{{"ada@EXAMPLE", []string{"en_0"}}, {"lovelace ada", []string{"en_0"}}, {"4930123", []string{"en_1"}}, {"en_2", []string{"en_2"}}, {"co_1 Alan", []string{"en_2"}}, {"example.org", []string{"en_0", "en_1"}}} {
		search(tt.text)
		b.ids(tt.text, tt.want)
		if query := url.QueryEscape(tt.text); !strings.HasSuffix(b.address(), "?search="+query) {
			t.Errorf("the address is %s, want the search %s", b.address(), query)
		}
	}
	search("ab")
	b.shows("Type at least 3 characters.")
	b.ids("those found before", []string{"en_0", "en_1"})
	b.clickText("Clear filters")
	b.rows(3)
	b.press("/")
	b.until("the search of all pages", `document.activeElement.role === "combobox"`)
	// The driver sends a key and its character separately, so the search may receive the slash.
	b.run(chromedp.Evaluate(`document.activeElement.select()`, nil), chromedp.KeyEvent("1234567\r"))
	b.ids("an answer, from the search of all pages", []string{"en_1"})
	b.breaks(&fault{part: "/entries", serve: refusal(http.StatusUnprocessableEntity, "question_too_large")})
	search("Alan")
	b.state("slow")
	b.shows("Choose a shorter period, or one embeddable.")
	b.breaks()
	b.open(at(project, "entries?search=ab"))
	b.state("invalid")
	b.shows("It must have from 3 to 256 characters.")
	b.open(at(project, "entries?embeddable=em_search&search=example&answer=%22Ada+Lovelace%22&answer_key=name"))
	b.rows(1)
	for _, width := range []int64{390, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(width, scheme)
			b.fits(fmt.Sprint("a search at ", width))
			b.picture(fmt.Sprintf("search-%d-%s", width, scheme))
		}
	}
}

// download downloads the list in the dialog and returns the file.
func (b *tab) download(kind string, safe bool) []byte {
	b.Helper()
	folder := b.TempDir()
	b.onBrowser(func(contextID cdp.BrowserContextID) chromedp.Action {
		return browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithBrowserContextID(contextID).WithDownloadPath(folder)
	})
	b.clickText("Download")
	b.until("the dialog", `document.querySelector("dialog form.download")`)
	ending := kind
	switch {
	case kind == "ndjson":
		b.click("dialog label:nth-of-type(3) input[type=radio]")
	case kind == "reading":
		ending = "csv"
		b.click("dialog label:nth-of-type(2) input[type=radio]")
	case !safe:
		b.click("dialog .safe input")
	}
	b.click("dialog button[type=submit]")
	b.until("the file", `document.querySelector("dialog [data-state=done]")`)
	// Chromium makes an empty file of this name before it moves the written one there.
	var content []byte
	eventually.True(b.T, "a file comes", func() bool {
		found, _ := filepath.Glob(filepath.Join(folder, "*."+ending))
		for _, file := range found {
			var err error
			if content, err = os.ReadFile(file); err != nil {
				b.Fatal(err)
			}
		}
		return len(content) > 0
	})
	b.clickText("Done")
	return content
}

// TestLongDownload compares downloaded files with the API's list of the same filter.
func TestLongDownload(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.signIn(demoProject, w.APIKey, at(demoProject, "entries?embeddable="+solar))
	request := b.request("/projects/" + demoProject + "/entries?limit=1000000&sort=created_at&embeddable_id=" + solar)
	request.Header.Set("Accept", "application/x-ndjson")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	want, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	n := bytes.Count(want, []byte("\n"))
	b.rows(50)

	if got := b.download("ndjson", false); !bytes.Equal(got, want) {
		t.Errorf("the file has %d bytes in %d lines, the API gives %d in %d", len(got), bytes.Count(got, []byte("\n")), len(want), n)
	}

	records, err := csv.NewReader(bytes.NewReader(b.download("csv", false))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range records[1:] {
		ids = append(ids, r[0])
	}
	if diff := cmp.Diff(w.entryIDs(t, client.EntryQuery{EmbeddableID: solar, Sort: "created_at"}), ids); diff != "" {
		t.Errorf("the entries of the CSV: %s", diff)
	}
	entry, err := w.api.Entry(t.Context(), demoProject, ids[0])
	if err != nil {
		t.Fatal(err)
	}
	row := map[string]string{}
	for i, name := range records[0] {
		row[name] = records[1][i]
	}
	if row["contact_id"] != entry.ContactID || row["embeddable_id"] != solar || len(records[0]) < 9 {
		t.Errorf("%v, want the fields of %+v", row, entry)
	}

	// If the API refuses the list, no file is made.
	b.breaks(&fault{part: "/entries", serve: refusal(403, "forbidden")})
	b.clickText("Download")
	b.click("dialog button[type=submit]")
	b.until("no file", `document.querySelector("dialog [data-state='403']") && document.querySelector("dialog").innerText.includes("No file was made")`)
}

// TestLongSafeSpreadsheet downloads the cells of the table that also tests the command line's --safe. Both write the same.
func TestLongSafeSpreadsheet(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../export/testdata/safe.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Cell  string
		Value json.RawMessage
	}
	if err := json.Unmarshal(table, &cases); err != nil {
		t.Fatal(err)
	}
	var data, head, row strings.Builder
	for i, c := range cases {
		fmt.Fprintf(&data, `,"k%d":%s`, i, c.Value)
		fmt.Fprintf(&head, ",k%d", i)
		row.WriteString("," + c.Cell)
	}
	w := start(t)
	const project = "pr_formula"
	key := w.newProject(t, project, "Formula", "em_1")
	w.send(t, "entries", newEntry(project, "em_1", "en_1", time.Now(), "{"+data.String()[1:]+`,"=key":"v"}`))
	b := newTab(t, w)
	b.signIn(project, key, at(project, "entries"))
	b.rows(1)
	content := string(b.download("csv", true))
	if first, _, _ := strings.Cut(content, "\r\n"); !strings.HasPrefix(first, "\ufeffentry_id,") || !strings.HasSuffix(first, head.String()+",'=key") {
		t.Errorf("the first row is %q", first)
	}
	if want := row.String() + ",v\r\n"; !strings.HasSuffix(content, want) {
		t.Errorf("the file is\n%q, and does not end with\n%q", content, want)
	}
}

// TestLongReadingSpreadsheet downloads a table for people, with a browser in English and with one in German.
func TestLongReadingSpreadsheet(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project = "pr_reading"
	key := w.newProject(t, project, "Reading", "")
	w.send(t, "embeddables",
		record{"embeddable_id": "em_1", "title": "A survey; short", "group_id": "gr_1", "project_id": project, "json_string_prod": `{"pages":[{"key":"first","components":[
			{"name":"mood","label":"How is it?","options":[{"value":"c","label":"Clarity"},{"value":"f","label":"=1+1"}]},
			{"name":"several","label":"Which ones?","options":[{"value":"c","label":"Clear"},{"value":"d","label":"Dark, or so"}]},
			{"name":"price","label":"What does it\n cost?"},{"name":"same","label":"How is it?"},{"name":"owner","label":"+Owner"}]}]}`})
	at0 := time.Date(2026, 9, 30, 22, 0, 5, 0, time.UTC) // 00:00:05 of the next day in Berlin
	w.send(t, "entries",
		newEntry(project, "em_1", "en_1", at0, `{"later":"x;y","owner":true,"price":-1.50,"several":["c","d","e"],"mood":"c","same":"c"}`),
		newEntry(project, "em_gone", "en_2", at0.Add(-time.Hour), `{"owner":false,"price":12345678901234567.5,"several":[],"mood":"f","same":"=2","later":null}`))
	b := newTab(t, w)
	b.signIn(project, key, at(project, "entries"))
	b.rows(2)
	for _, language := range []struct {
		locale string
		want   []string
	}{
		{"en-GB", []string{
			`Created (Europe/Berlin),Updated,Embeddable,Contact,Entry,How is it?,Which ones?,What does it cost?,How is it? (same),'+Owner,later`,
			`2026-10-01 00:00:05,2026-10-01 00:00:05,A survey; short,co_1,en_1,Clarity,"Clear, Dark, or so, e",-1.50,c,Yes,x;y`,
			`2026-09-30 23:00:05,2026-09-30 23:00:05,em_gone,co_1,en_2,f,,'12345678901234567.5,'=2,No,`,
		}},
		{"de-DE", []string{
			`Created (Europe/Berlin);Updated;Embeddable;Contact;Entry;How is it?;Which ones?;What does it cost?;How is it? (same);'+Owner;later`,
			`2026-10-01 00:00:05;2026-10-01 00:00:05;"A survey; short";co_1;en_1;Clarity;Clear, Dark, or so, e;-1,50;c;Yes;"x;y"`,
			`2026-09-30 23:00:05;2026-09-30 23:00:05;em_gone;co_1;en_2;f;;'12345678901234567.5;'=2;No;`,
		}},
	} {
		b.run(emulation.SetLocaleOverride().WithLocale(language.locale))
		got := strings.Split(strings.TrimSuffix(string(b.download("reading", true)), "\r\n"), "\r\n")
		language.want[0] = "\ufeff" + language.want[0]
		if diff := cmp.Diff(language.want, got); diff != "" {
			t.Errorf("%s: %s", language.locale, diff)
		}
	}
}

// TestLongEntry compares the page views on the page of an entry with the API's events.
func TestLongEntry(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	entry, err := w.api.Entry(t.Context(), demoProject, w.EntryID)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for event, err := range w.api.Events(t.Context(), demoProject, w.EntryID, client.EventQuery{Direction: client.Ascending}) {
		if err != nil {
			t.Fatal(err)
		}
		if event.EventType == "flowpage.viewed" {
			want = append(want, *event.PageKey)
		}
	}
	b.signIn(demoProject, w.APIKey, at(demoProject, "entries/"+url.PathEscape(w.EntryID)))
	b.until("its way", `document.querySelector("[data-events]")`)
	if diff := cmp.Diff(want, b.texts(".journey .stop strong")); diff != "" {
		t.Errorf("the pages: %s", diff)
	}
	b.clickText("Raw JSON")
	if got := b.text("[data-answers] pre"); got != entry.Data && !strings.HasPrefix(entry.Data, got[:min(len(got), 500)]) {
		t.Errorf("raw: %s, want %s", got, entry.Data)
	}
	for e, err := range w.api.PageViews(t.Context(), demoProject, client.PageViewQuery{ContactID: entry.ContactID, IncludeURLs: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.EntryID == w.EntryID {
			b.shows(*e.PageViews[0].URL)
		}
	}
	title := b.text("h1")
	if !strings.Contains(entry.Data, strings.Fields(title)[0]) {
		t.Errorf("the title is %q, the answers are %s", title, entry.Data)
	}
	same := w.entryIDs(t, client.EntryQuery{EmbeddableID: entry.EmbeddableID, Sort: "created_at"})
	place := slices.Index(same, w.EntryID)
	isShown := func(id string) {
		t.Helper()
		b.until("the entry "+id, `document.querySelector(".pagehead code").innerText === `+quote(id)+` && document.querySelector("[data-events]")`)
	}
	b.clickText("Older")
	isShown(same[place+1])
	b.until("a newer entry", `document.querySelector("[rel=prev]")`)
	b.press("k")
	isShown(w.EntryID)

	// Entries of the same time are passed one by one.
	const project = "pr_equal"
	key := w.newProject(t, project, "Equal", "em_1")
	var equal []record
	for i := range 5 {
		equal = append(equal, newEntry(project, "em_1", fmt.Sprint("en_", i), demoEnd, "{}"))
	}
	w.send(t, "entries", equal...)
	other := newTab(t, w)
	other.signIn(project, key, at(project, "entries"))
	other.rows(5)
	order := eval[[]string](other, `[...document.querySelectorAll("tr[data-entry]")].map(e => e.dataset.entry)`)
	other.open(at(project, "entries/"+order[0]))
	for _, id := range order[1:] {
		other.clickText("Older")
		other.until("the entry "+id, `document.querySelector(".pagehead code").innerText === `+quote(id)+` && document.querySelector("[data-events]")`)
	}
	other.until("the oldest", `document.querySelector("[rel=prev]") && !document.querySelector("[rel=next]")`)

	b.clickText(entry.ContactID)
	own := w.entryIDs(t, client.EntryQuery{ContactID: entry.ContactID})
	b.until("the contact's time line", `document.querySelector("h1").innerText === `+quote(title)+` && document.querySelectorAll(".timeline > li").length === `+quoteInt(len(own)))
	b.shows("lectern erase --project='" + demoProject + "' --contact='" + entry.ContactID + "'")
	if got, want := b.address(), at(demoProject, "contacts/"+entry.ContactID); got != want {
		t.Errorf("the address is %s, want %s", got, want)
	}
}
