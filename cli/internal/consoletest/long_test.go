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
	"github.com/chromedp/chromedp/kb"
)

func long(t *testing.T) {
	t.Helper()
	if os.Getenv("LECTERN_LONG") != "1" {
		t.Skip("takes long; LECTERN_LONG=1 runs it")
	}
}

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

// TestLongBig shows 100,000 entries with 800,000 page views. The pages stay responsive, draw only visible rows, and
// count everything.
func TestLongBig(t *testing.T) {
	long(t)
	w := start(t)
	const project, n = "pr_big", 100_000
	began := time.Now()
	key := w.big(t, project, n)
	t.Logf("stored after %v", time.Since(began))

	// A page that does not react for so many milliseconds is frozen. The log has the measured time.
	const frozen = 20_000
	fluid := func(b *tab, where string) {
		t.Helper()
		took := eval[float64](b, `longest`)
		b.Logf("%s: longest task %.0f ms, %.0f MB; the largest process of a page had %.0f MB", where, took, b.megabytes(), w.largestProcess(t))
		if took > frozen {
			b.Errorf("%s: the page did not react for %.0f ms", where, took)
		}
	}
	t.Run("entries", func(t *testing.T) {
		b := newTab(t, w)
		began := time.Now()
		b.signIn(project, key, at(project, "entries"))
		b.until("the first rows", `document.querySelector("[role=grid] [aria-rowindex='2']")`)
		t.Logf("first rows after %v", time.Since(began))
		b.rows(n)
		t.Logf("all rows after %v", time.Since(began))
		fluid(b, "read")
		// Scroll through the whole table, one step in each frame.
		frames := eval[map[string]float64](b, `(async () => {
			const grid = document.querySelector("[role=grid]"), steps = 120, frames = [];
			let most = 0, last = performance.now();
			for (let i = 0; i <= steps; i++) {
				grid.scrollTop = grid.scrollHeight * i / steps;
				await new Promise(requestAnimationFrame);
				frames.push(performance.now() - last); last = performance.now();
				most = Math.max(most, grid.querySelectorAll("[role=row]").length);
			}
			frames.sort((a, b) => a - b);
			return { "median frame, ms": frames[frames.length >> 1], "longest frame, ms": frames.at(-1), "most rows drawn": most };
		})()`)
		t.Logf("scrolled: %v", frames)
		if frames["most rows drawn"] > 100 {
			t.Errorf("%v rows were drawn at once", frames["most rows drawn"])
		}
		b.until("the last row", `document.querySelector("[aria-rowindex='`+quoteInt(n+1)+`']")`)
		eval[bool](b, `document.querySelector("[role=grid]").focus() === undefined`)
		b.press(kb.Home)
		b.until("the first row", firstCell)
		fluid(b, "scrolled")
		began = time.Now()
		content := b.download("csv", true)
		t.Logf("a CSV of %d MB after %v", len(content)/1_000_000, time.Since(began))
		fluid(b, "downloaded")
	})
	t.Run("overview", func(t *testing.T) {
		b := newTab(t, w)
		began := time.Now()
		b.signIn(project, key, at(project, "overview"))
		b.until("the first figures", `document.querySelector("[data-figure=total]")`)
		t.Logf("first figures after %v", time.Since(began))
		b.until("all figures", `!document.querySelector("main").innerText.includes("read so far")`)
		t.Logf("all figures after %v", time.Since(began))
		fluid(b, "overview")
	})
	for _, filter := range []string{"", "?version=2"} {
		t.Run("funnel"+filter, func(t *testing.T) {
			b := newTab(t, w)
			began := time.Now()
			b.signIn(project, key, at(project, "funnel/em_big"+filter))
			b.until("the first figures", `document.querySelector("table.funnel")`)
			t.Logf("first figures after %v", time.Since(began))
			b.until("all figures", `document.querySelector("[data-state=counted]")`)
			t.Logf("all figures after %v", time.Since(began))
			want := "100,000"
			if filter != "" {
				want = "33,333"
			}
			if got := b.text(".reached b"); got != want {
				t.Errorf("%s entries reached the first page, want %s", got, want)
			}
			fluid(b, "funnel")
		})
	}
}

// TestLongFigures measures each page in a browser with an empty cache. It logs the first and the largest paint, and the
// total time of tasks beyond 50 ms.
func TestLongFigures(t *testing.T) {
	long(t)
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
		if got["first"] > 1000 {
			t.Errorf("%s: the first paint took %.0f ms", v.name, got["first"])
		}
	}
}
