package consoletest

import (
	"fmt"
	"strings"
	"testing"
	"time"

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

// TestLongLinkedZone checks that an address names its time zone, and that the zone of a link wins over the visitor's own.
// A zone that the API does not know becomes UTC. The page says both.
func TestLongLinkedZone(t *testing.T) {
	t.Parallel()
	w := start(t)
	const project = "pr_zone"
	key := w.newProject(t, project, "Zones", "em_zone")
	// The entry is of 30 September in UTC, and of 1 October in Berlin and in Kolkata.
	w.send(t, "entries", newEntry(project, "em_zone", "en_1", time.Date(2026, 9, 30, 22, 30, 0, 0, time.UTC), `{}`))
	b := newTab(t, w)
	b.signIn(project, key, at(project, "overview"))
	said := func() string { return eval[string](b, `document.querySelector("[data-zone=link]")?.innerText ?? ""`) }
	shown := func(zone, day, entries string) {
		t.Helper()
		b.open(at(project, "overview?from=2026-10-01&to=2026-10-01"+zone))
		b.until("the entries of "+day+zone, `document.querySelector("[data-figure=entries]")?.innerText === `+quote(entries)+` && document.querySelector("main").innerText.includes(`+quote(day)+`)`)
	}
	shown("", "(Europe/Berlin)", "1")
	if got := eval[string](b, `location.search`); got != "?from=2026-10-01&to=2026-10-01&tz=Europe%2FBerlin" || said() != "" {
		t.Errorf("the address is %s, and the page says %q", got, said())
	}
	for link, zone := range map[string]string{"%2B02:00": "UTC", "Mars/Base": "UTC", "Etc/Unknown": "UTC"} {
		shown("&tz="+link, "("+zone+")", "0")
		if got := said(); !strings.Contains(got, "is not known. Days and times are in "+zone) {
			t.Errorf("%s: the page says %q", link, got)
		}
	}
	shown("&tz=Asia/Kolkata", "1 Oct 2026", "1")
	if got := said(); !strings.HasPrefix(got, "Days and times are those of the link’s time zone Asia/") {
		t.Errorf("the page says %q", got)
	}
	b.clickText("Entries")
	b.until("the link's zone on another page", `document.querySelector("[data-zone=link]") && document.querySelectorAll("tr[data-entry]").length === 1`)
	b.clickText("Use Europe/Berlin")
	b.until("the own zone", `!document.querySelector("[data-zone=link]") && location.search.endsWith("&tz=Europe%2FBerlin")`)
}

// TestLongDeviceZone opens the pages of figures on devices with time zones of every kind. A zone that browser and API do not both
// know becomes UTC, and the page says so.
func TestLongDeviceZone(t *testing.T) {
	t.Parallel()
	w := start(t)
	for _, tt := range []struct {
		name, device, shown string
		isKnown             bool
	}{
		{"a container", "Etc/Unknown", "UTC", false},
		{"UTC", "UTC", "UTC", true},
		{"an offset", "+02:00", "UTC", false},
		{"a former name", "Asia/Calcutta", "Asia/Calcutta", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, w)
			// The browser itself is in the zone of all tests. It calls that zone by the name of the device's.
			b.run(b.script(`{
				const resolved = Intl.DateTimeFormat.prototype.resolvedOptions;
				Intl.DateTimeFormat.prototype.resolvedOptions = function () {
					const is = resolved.call(this);
					return is.timeZone === ` + quote(zone) + ` ? { ...is, timeZone: ` + quote(tt.device) + ` } : is;
				};
			}`))
			for _, name := range []string{"overview", "entries", "entry", "funnel", "answers", "embeddables", "experiment"} {
				b.show(w, find(w, name))
				if problems := b.texts("[role=alert]"); len(problems) > 0 {
					t.Errorf("%s shows %q", name, problems)
				}
				if got := eval[string](b, `new URLSearchParams(location.search).get("tz")`); got != tt.shown {
					t.Errorf("%s is in the zone %s, want %s", name, got, tt.shown)
				}
				said := eval[string](b, `document.querySelector("[data-zone]")?.innerText ?? ""`)
				if isKnown := !strings.Contains(said, "Your device’s zone, "+tt.device+", is not known."); isKnown != tt.isKnown {
					t.Errorf("%s says of the zone: %q", name, said)
				}
			}
		})
	}
}
