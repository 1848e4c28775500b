package consoletest

import (
	"bytes"
	"encoding/csv"
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
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
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

const firstCell = `document.querySelector("[role=grid] [aria-rowindex='2'] [role=gridcell]")?.innerText`

// rows waits until the table of entries is complete and has n rows.
func (b *tab) rows(n int) {
	b.Helper()
	b.until(fmt.Sprint(n, " rows"), `document.querySelector("main [data-state=done]") && document.querySelector("[role=grid]")?.dataset.rows === "`+quoteInt(n)+`"`)
}

// TestEntries filters and sorts the table in the browser, and compares it with the API's lists.
func TestEntries(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.signIn(demoProject, w.APIKey, at(demoProject, "entries"))
	all := w.entryIDs(t, client.EntryQuery{})
	b.rows(len(all))
	b.until("the newest first", firstCell+` === `+quote(all[0]))
	if drawn := eval[int](b, `document.querySelectorAll("[role=grid] [role=row]").length`); drawn > 80 {
		t.Errorf("%d rows are drawn", drawn)
	}

	b.choose("Embeddable", solar)
	b.rows(len(w.entryIDs(t, client.EntryQuery{EmbeddableID: solar})))
	if got, want := b.address(), at(demoProject, "entries?embeddable="+solar); got != want {
		t.Errorf("the address is %s, want %s", got, want)
	}
	berlin, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	period := client.EntryQuery{
		EmbeddableID: solar, Sort: "created_at", Direction: client.Ascending,
		UpdatedAfter:  time.Date(2026, 9, 1, 0, 0, 0, 0, berlin).Add(-time.Microsecond),
		UpdatedBefore: time.Date(2026, 9, 4, 0, 0, 0, 0, berlin),
	}
	b.open(at(demoProject, "entries?embeddable="+solar+"&after=2026-09-01&before=2026-09-03"))
	inPeriod := w.entryIDs(t, period)
	b.rows(len(inPeriod))
	if len(inPeriod) == 0 || len(inPeriod) > 1000 {
		t.Fatalf("%d entries in the period", len(inPeriod))
	}
	b.click("[role=columnheader]:nth-child(4)") // created, the newest first
	b.click("[role=columnheader]:nth-child(4)")
	b.until("sorted", `document.querySelector("[role=columnheader]:nth-child(4)").ariaSort === "ascending" && `+firstCell+` === `+quote(inPeriod[0]))
	b.rows(len(inPeriod))
	for _, filter := range []string{"sort=created", "direction=asc", "after=2026-09-01"} {
		if !strings.Contains(b.address(), filter) {
			t.Errorf("the address %s has no %s", b.address(), filter)
		}
	}
	b.clickText("Clear filters")
	b.rows(len(all))

	b.clickText("Columns")
	answer := b.text("dialog li:nth-child(6) bdi")
	b.click("dialog li:nth-child(6) input")
	b.until("the column", `[...document.querySelectorAll("[role=columnheader]")].some(e => e.innerText === `+quote(answer)+`)`)
	b.clickText("Done")
	b.run(chromedp.Reload())
	b.until("the column stays", `[...document.querySelectorAll("[role=columnheader]")].some(e => e.innerText === `+quote(answer)+`)`)

	b.open(at(demoProject, "entries?after=yesterday&sort=size"))
	b.state("invalid")
	b.shows("after is “yesterday”")
	b.clickText("Show all entries")
	b.rows(len(all))
}

// TestTableByKeys moves through the table by keyboard alone.
func TestTableByKeys(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.signIn(demoProject, w.APIKey, at(demoProject, "entries"))
	all := w.entryIDs(t, client.EntryQuery{})
	b.rows(len(all))
	for range 40 {
		if eval[bool](b, `document.activeElement.role === "grid"`) {
			break
		}
		b.press(kb.Tab)
	}
	active := `document.getElementById(document.activeElement.getAttribute("aria-activedescendant"))`
	// isActive waits until a row is active and visible, and shows its entry.
	isActive := func(row int) {
		t.Helper()
		b.until(fmt.Sprint("row ", row), `(() => { const e = `+active+`, grid = document.activeElement.getBoundingClientRect(), own = e?.getBoundingClientRect();
			return e?.closest("[role=row]").getAttribute("aria-rowindex") === "`+quoteInt(row+2)+`" && e.innerText.trim() === `+quote(all[row])+` && own.top >= grid.top && own.bottom <= grid.bottom + 1; })()`)
	}
	isActive(0)
	b.press(kb.ArrowDown, kb.ArrowDown, kb.ArrowUp)
	isActive(1)
	b.press(kb.End)
	isActive(len(all) - 1)
	b.press(kb.ArrowUp)
	isActive(len(all) - 2)
	b.press(kb.Home)
	isActive(0)
	b.press(kb.PageDown)
	b.until("a page further", `Number(`+active+`?.closest("[role=row]").getAttribute("aria-rowindex")) > 5`)
	b.press(kb.PageUp)
	isActive(0)
	b.press(kb.ArrowDown, kb.Enter)
	b.until("the entry", `document.querySelector("h1")?.innerText === `+quote(all[1]))
	b.run(chromedp.NavigateBack())
	b.rows(len(all))
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
	if kind == "ndjson" {
		b.click("dialog label:nth-of-type(2) input[type=radio]")
	} else if !safe {
		b.click("dialog .safe input")
	}
	b.click("dialog button[type=submit]")
	b.until("the file", `document.querySelector("dialog [data-state=done]")`)
	// Chromium makes an empty file of this name before it moves the written one there.
	var content []byte
	for end := time.Now().Add(pageTimeout); len(content) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatal("no file came")
		}
		found, _ := filepath.Glob(filepath.Join(folder, "*."+kind))
		for _, file := range found {
			var err error
			if content, err = os.ReadFile(file); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.clickText("Done")
	return content
}

// TestDownload compares downloaded files with the API's list of the same filter.
func TestDownload(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.signIn(demoProject, w.APIKey, at(demoProject, "entries?embeddable="+solar))
	request := b.request("/projects/" + demoProject + "/entries?limit=1000000&embeddable_id=" + solar)
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
	b.rows(n)

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
	if diff := cmp.Diff(w.entryIDs(t, client.EntryQuery{EmbeddableID: solar}), ids); diff != "" {
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

// TestSafeSpreadsheet checks that no text of a visitor is a formula in a spreadsheet.
func TestSafeSpreadsheet(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project = "pr_formula"
	key := w.newProject(t, project, "Formula", "em_1")
	w.send(t, "entries", newEntry(project, "em_1", "en_1", time.Now(), `{"a":"=1+1","b":"+1","c":"-1","d":"@SUM(A1)","e":"\t=1","f":"\r=1","g":-5,"h":"a,b\"c\r\nd","i":"x;=1","j":["x;=1"],"k":"x\t\"=1\"","=key":"v"}`))
	b := newTab(t, w)
	b.signIn(project, key, at(project, "entries"))
	b.rows(1)
	content := b.download("csv", true)
	records, err := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(content, []byte("\ufeff")))).ReadAll()
	if err != nil || len(records) != 2 {
		t.Fatalf("%d rows, %v", len(records), err)
	}
	for _, value := range slices.Concat(records...) {
		if value != "-5" && strings.ContainsAny(value[:min(1, len(value))], "=+-@\t\r") {
			t.Errorf("a spreadsheet would run %q", value)
		}
		for _, cell := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(";\t\r\n", r) }) {
			if cell != "-5" && strings.IndexAny(strings.TrimLeft(cell, " \""), "=+-@") == 0 {
				t.Errorf("a spreadsheet that separates by semicolons or tabs would run %q of %q", cell, value)
			}
		}
	}
}

// TestEntry compares the page views on the page of an entry with the API's events.
func TestEntry(t *testing.T) {
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
	b.clickText("Entries of this contact")
	b.until("the contact's", `document.querySelector("main [data-state=done]") && `+firstCell+` === `+quote(w.EntryID))
	if got, want := b.address(), at(demoProject, "entries?contact="+entry.ContactID); got != want {
		t.Errorf("the address is %s, want %s", got, want)
	}
}
