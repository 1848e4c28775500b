package consoletest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/google/go-cmp/cmp"
)

// TestLongFunnel compares the funnels on the page with the API's figures, which the service compares with independent SQL. The
// bars are seen in print and with forced colours, too.
func TestLongFunnel(t *testing.T) {
	t.Parallel()
	w := start(t)
	b := newTab(t, w)
	b.keys = []string{w.APIKey}
	for _, tt := range []struct{ name, embeddable, filters, query string }{
		{"all of solar", solar, "?days=0", ""},
		{"a period", solar, "?from=2026-08-20&to=2026-09-02", "&created_after=2026-08-19T21:59:59.999999Z&created_before=2026-09-02T22:00:00Z"},
		{"a version", solar, "?days=0&version=2", "&version=2&by=version"},
		{"all of loan", "emb_loan3xw9d", "?days=0", ""},
	} {
		answer, err := http.DefaultClient.Do(b.request("/projects/" + demoProject + "/entries-funnel?embeddable_id=" + tt.embeddable + tt.query))
		if err != nil {
			t.Fatal(err)
		}
		var figures []struct {
			Entries, Started, Completed int
			Pages                       []struct {
				Key     string `json:"page_key"`
				Reached int
				Dropped int
			}
		}
		err = json.NewDecoder(answer.Body).Decode(&figures)
		_ = answer.Body.Close()
		if err != nil || len(figures) != 1 || len(figures[0].Pages) < 4 {
			t.Fatalf("%s: %+v, %v", tt.name, figures, err)
		}
		f := figures[0]
		want := []string{fmt.Sprintf("%d entries, %d started, %d completed", f.Entries, f.Started, f.Completed)}
		for _, p := range f.Pages {
			want = append(want, fmt.Sprintf("%s: %d reached, %d dropped", p.Key, p.Reached, p.Dropped))
		}
		b.signIn(demoProject, w.APIKey, at(demoProject, "funnel/"+tt.embeddable+tt.filters))
		b.until("it is counted", `document.querySelector("[data-state=counted]")`)
		got := eval[[]string](b, `(() => {
			const number = text => parseInt(text.replaceAll(",", "")) || 0;
			const figure = name => number(document.querySelector("[data-figure=" + name + "]").innerText);
			return [figure("entries") + " entries, " + figure("started") + " started, " + figure("completed") + " completed",
				...[...document.querySelectorAll("table.funnel tbody tr")].map(row =>
					row.querySelector("th bdi").innerText + ": " + number(row.querySelector(".reached b").innerText) + " reached, " + number(row.querySelector("td.number").innerText) + " dropped")];
		})()`)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the API, and the page: %s", tt.name, diff)
		}
	}
	b.shows("The largest drop is on page ")
	if versions := b.texts("table.versions thead a"); len(versions) < 2 {
		t.Errorf("side by side: %v", versions)
	}
	for _, media := range []*emulation.SetEmulatedMediaParams{
		emulation.SetEmulatedMedia().WithMedia("print"),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}}),
	} {
		b.run(media)
		if seen := eval[bool](b, `[...document.querySelectorAll("table.funnel .share .part")].every(e => e.checkVisibility() && e.getBBox().width > 1 &&
			getComputedStyle(e).fill !== getComputedStyle(e.parentNode.querySelector(".behind")).fill)`); !seen {
			t.Errorf("the bars are not seen: %+v", media)
		}
	}
}
