package consoletest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLongDigits checks that pages show each number with all its digits, and a number and a text apart.
func TestLongDigits(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project, embeddable = "pr_digits", "em_digits"
	key := w.newProject(t, project, "Digits", embeddable)
	var entries, events, versions []record
	for i, answer := range []string{"123456789012345678", "123456789012345679", "0.12345678901234567891", "100", `"100"`, `"true"`} {
		id := fmt.Sprint("en_", i)
		entries = append(entries, newEntry(project, embeddable, id, demoEnd, `{"n":`+answer+`}`))
		version := 9_007_199_254_740_990 + int64(i%2) // the greatest that the API takes
		events = append(events, record{"project_id": project, "entry_id": id, "embeddable_id": embeddable, "contact_id": "co_1", "group_id": "gr_1", "embeddable_version_number": version,
			"timestamp": demoEnd.Format("2006-01-02T15:04:05Z"), "event_type": "flowpage.viewed", "page_id": "p", "page_key": "p", "page_index": int64(1) << 60, "total_pages": int64(1) << 60, "custom_event_name": nil, "custom_event_props": nil, "url": nil})
		versions = append(versions, record{"embeddable_id": embeddable, "project_id": project, "version_number": version, "saved_at": "2026-09-01T08:00:00Z", "json_string": fmt.Sprintf(`{"v":%d}`, version)})
	}
	w.send(t, "entries", entries...)
	w.send(t, "events", events...)
	w.send(t, "embeddable-versions", versions[:2]...)
	b := newTab(t, w)
	b.signIn(project, key, at(project, "answers/"+embeddable+"?days=0"))
	b.until("the answers", `document.querySelector("[data-answered='6']")`)
	if diff := cmp.Diff([]string{`"100"`, `"true"`, "0.12345678901234567891", "100", "123456789012345678", "123456789012345679"},
		eval[[]string](b, `[...document.querySelectorAll(".values tbody th")].map(e => e.innerText).sort()`)); diff != "" {
		t.Error(diff)
	}
	b.open(at(project, "entries/en_4"))
	b.until("the text of digits", `document.querySelector("dl.answers dd")?.innerText === '"100"'`)
	b.shows("page 1,152,921,504,606,846,977 of 1,152,921,504,606,846,976")
	b.open(at(project, "funnel/"+embeddable+"?days=0"))
	b.until("both versions", `document.querySelectorAll("table.versions thead a").length === 2`)
	if diff := cmp.Diff([]string{"Version 9007199254740991", "Version 9007199254740990"}, b.texts("table.versions thead a")); diff != "" {
		t.Error(diff)
	}
	b.clickText("Version 9007199254740991")
	b.until("its entries", `document.querySelector("[data-state=counted][data-entries='3']") && location.search.includes("version=9007199254740991")`)
	b.open(at(project, "embeddables/"+embeddable))
	b.until("their difference", `document.querySelector(".line.added .text")?.innerText.includes("9007199254740991") && document.querySelector(".line.removed .text").innerText.includes("9007199254740990")`)
}
