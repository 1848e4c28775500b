package consoletest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
)

// megabytes returns the used size of the page's JavaScript heap.
func (b *tab) megabytes() float64 {
	b.Helper()
	var used float64
	b.run(performance.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
		metrics, err := performance.GetMetrics().Do(ctx)
		for _, m := range metrics {
			if m.Name == "JSHeapUsedSize" {
				used = m.Value / 1e6
			}
		}
		return err
	}))
	return used
}

// largestProcess returns the peak memory of the largest renderer process of the browser, as Linux reports it.
func (w *world) largestProcess(t *testing.T) (most float64) {
	t.Helper()
	processes, err := systeminfo.GetProcessInfo().Do(cdp.WithExecutor(w.browser, chromedp.FromContext(w.browser).Browser))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.ID))
		if p.Type != "renderer" || err != nil {
			continue
		}
		_, line, _ := strings.Cut(string(status), "VmHWM:")
		var kilobytes float64
		if _, err := fmt.Sscan(line, &kilobytes); err == nil {
			most = max(most, kilobytes/1000)
		}
	}
	return most
}

const bigPages = 8

// big stores n entries with eight page views each, and returns a key that reads them.
func (w *world) big(t *testing.T, project string, n int) string {
	t.Helper()
	key := w.newProject(t, project, "Big", "em_big")
	random := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2026, 9, 30, 12, 0, 0, 0, time.UTC)
	const batch = 5_000
	for from := 0; from < n; from += batch {
		entries, events := make([]record, 0, batch), make([]record, 0, bigPages*batch)
		for i := from; i < from+batch; i++ {
			at = at.Add(-time.Duration(random.IntN(60_000)) * time.Millisecond)
			id := fmt.Sprintf("en_%06d", i)
			entries = append(entries, newEntry(project, "em_big", id, at, fmt.Sprintf(`{"first_name":"Søren","email":"visitor%d@example.org","age":%d,"newsletter":%t,"goals":["Save","Grow"],"budget":%d}`, i, 18+i%70, i%2 == 0, i)))
			for view := range bigPages {
				events = append(events, record{"entry_id": id, "contact_id": "co_1", "project_id": project, "group_id": "gr_1", "embeddable_id": "em_big", "embeddable_version_number": 1 + i%3,
					"timestamp": at.Add(time.Duration(view*20+random.IntN(20)) * time.Second).Format(time.RFC3339Nano), "page_id": fmt.Sprint("pg_", view), "page_key": fmt.Sprint("page ", view), "page_index": view,
					"max_page_id": nil, "max_page_key": nil, "max_page_index": nil, "total_pages": bigPages, "event_type": "flowpage.viewed", "view_type": "flowpage", "custom_event_name": nil, "custom_event_props": nil})
			}
		}
		w.send(t, "entries", entries...)
		w.send(t, "events", events...)
	}
	return key
}

// measures skips t unless scripts/console-figures runs t. Such a test measures times, which a machine with other work changes.
func measures(t *testing.T) {
	t.Helper()
	if os.Getenv("CONSOLE_FIGURES") != "1" {
		t.Skip("scripts/console-figures runs this test")
	}
}

// TestLongBig shows 25,000 entries with 200,000 page views. It logs when each page shows its final figures.
func TestLongBig(t *testing.T) {
	measures(t)
	w := start(t)
	const project, n = "pr_big", 25_000
	began := time.Now()
	key := w.big(t, project, n)
	t.Logf("stored after %v", time.Since(began))

	// A page that does not react for so many milliseconds is frozen. The log has the measured time.
	const frozen = 20_000
	for _, tt := range []struct{ name, path, shown, figure, want string }{
		{"overview", "overview?days=0", `document.querySelector("[data-figure=drop]")`, "[data-figure=entries]", "25,000"},
		{"entries", "entries", `document.querySelectorAll("tr[data-entry]").length === 50 && document.querySelector("[data-total='10001']")`, "[data-total]", "1 to 50 of more than 10,000"},
		{"funnel", "funnel/em_big?days=0", `document.querySelector("[data-state=counted]")`, ".reached b", "25,000"},
		{"funnel of a version", "funnel/em_big?days=0&version=2", `document.querySelector("[data-state=counted]")`, ".reached b", "8,333"},
		{"answers", "answers/em_big", `document.querySelector("[data-answered]")`, "[data-answered]", "Of 25,000 entries. All gave an answer."},
	} {
		b := newTab(t, w)
		began := time.Now()
		b.signIn(project, key, at(project, tt.path))
		b.until("all figures", tt.shown)
		took := eval[float64](b, `longest`)
		t.Logf("%s: all shown after %v, longest task %.0f ms, %.0f MB; the largest process of a page had %.0f MB", tt.name, time.Since(began), took, b.megabytes(), w.largestProcess(t))
		if took > frozen {
			t.Errorf("%s: the page did not react for %.0f ms", tt.name, took)
		}
		if got := b.text(tt.figure); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if tt.name == "entries" {
			began = time.Now()
			content := b.download("csv", true)
			t.Logf("a CSV of %d MB after %v", len(content)/1_000_000, time.Since(began))
		}
	}
}

// TestLongFigures measures each page in a browser with an empty cache. It logs the first and the largest paint, and the
// total time of tasks beyond 50 ms. No time fails the test, as each depends on what else the machine does.
func TestLongFigures(t *testing.T) {
	measures(t)
	w := start(t)
	for _, v := range views(w) {
		b := newTab(t, w)
		b.run(b.script(`window.figures = { largest: 0, blocked: 0 };
			new PerformanceObserver(list => { for (const e of list.getEntries()) figures.largest = e.startTime; }).observe({ type: "largest-contentful-paint", buffered: true });
			new PerformanceObserver(list => { for (const e of list.getEntries()) figures.blocked += e.duration - 50; }).observe({ type: "longtask", buffered: true });`))
		b.show(w, v)
		got := eval[map[string]float64](b, `({ first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN, all: performance.now(), ...figures })`)
		script := eval[float64](b, `performance.getEntriesByType("resource").filter(e => e.name.endsWith(".js")).reduce((n, e) => n + e.encodedBodySize, 0)`)
		t.Logf("%-12s first paint %4.0f ms, largest paint %4.0f ms, all shown %5.0f ms, blocked %4.0f ms, script %3.0f kB, memory %3.0f MB",
			v.name, got["first"], got["largest"], got["all"], got["blocked"], script/1000, b.megabytes())
	}
}
