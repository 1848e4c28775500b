package consoletest

import (
	_ "embed"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/cli/internal/local"
)

//go:embed testdata/funnel.sql
var funnelSQL string

// entriesDatabase connects to the entries database of the run.
func (w *world) entriesDatabase(t *testing.T) *pgx.Conn {
	t.Helper()
	text, err := os.ReadFile(local.EnvFile(w.folder))
	if err != nil {
		t.Fatal(err)
	}
	// All databases of a run are on one server. demo.env has the address of one of them.
	_, warehouse, _ := strings.Cut(string(text), "LECTERN_SYNC_TO='")
	warehouse, _, _ = strings.Cut(warehouse, "'")
	u, err := url.Parse(warehouse)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.User("entries_owner"), "/entries"
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// TestFunnel compares the funnels of the demo project with counts by SQL, row by row.
func TestFunnel(t *testing.T) {
	t.Parallel()
	w := start(t)
	conn := w.entriesDatabase(t)
	berlin, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, embeddable, filters string
		version                   any
		from, until               any
	}{
		{name: "all of solar", embeddable: solar},
		{name: "all of loan", embeddable: "emb_loan3xw9d"},
		{name: "all of skin", embeddable: "emb_skin5mh8t"},
		{name: "a period", embeddable: solar, filters: "?after=2026-08-20&before=2026-09-02",
			from: time.Date(2026, 8, 20, 0, 0, 0, 0, berlin), until: time.Date(2026, 9, 3, 0, 0, 0, 0, berlin)},
		{name: "a version", embeddable: solar, filters: "?version=2", version: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := []string{}
			rows, err := conn.Query(t.Context(), funnelSQL, demoProject, tt.embeddable, tt.version, tt.from, tt.until)
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
				var entries, started, views, reached, dropped, timed int
				var index int
				var id, key string
				var median *float64
				if err := rows.Scan(&entries, &started, &views, &id, &key, &index, &reached, &dropped, &timed, &median); err != nil {
					t.Fatal(err)
				}
				if len(want) == 0 {
					want = append(want, fmt.Sprintf("%d entries, %d started", entries, started))
				}
				line := fmt.Sprintf("%s: %d reached, %d dropped", key, reached, dropped)
				if median != nil {
					line += ", " + duration(*median)
				}
				want = append(want, line)
			}
			if rows.Err() != nil || len(want) < 4 {
				t.Fatalf("%d rows, %v", len(want), rows.Err())
			}
			last := len(want) - 1
			head, _, _ := strings.Cut(want[last], " reached")
			if _, median, found := strings.Cut(want[last], " dropped, "); found {
				want[last] = head + " reached, " + median
			} else {
				want[last] = head + " reached" // nobody drops off on the last page
			}

			b := newTab(t, w)
			b.signIn(demoProject, w.APIKey, at(demoProject, "funnel/"+tt.embeddable+tt.filters))
			b.until("it is counted", `document.querySelector("[data-state=counted]")`)
			got := eval[[]string](b, `(() => {
				const number = text => parseInt(text.replaceAll(",", ""));
				const figures = [...document.querySelectorAll("dl.figures b")].map(e => number(e.innerText));
				return [figures[0] + " entries, " + figures[1] + " started", ...[...document.querySelectorAll("table.funnel tbody tr")].map(row => {
					const [dropped, median] = [...row.querySelectorAll("td.number")].map(e => e.innerText);
					return row.querySelector("th bdi").innerText + ": " + number(row.querySelector(".reached b").innerText) + " reached" +
						(dropped === "last page" ? "" : ", " + number(dropped) + " dropped") + (median === "–" ? "" : ", " + median);
				})];
			})()`)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("SQL, and the page: %s", diff)
			}
		})
	}
}

// duration formats milliseconds as the console does.
func duration(ms float64) string {
	seconds := int(ms/1000 + 0.5)
	switch {
	case ms < 1000:
		return fmt.Sprintf("%d ms", int(ms+0.5))
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case seconds%60 == 0:
		return fmt.Sprintf("%d min", seconds/60)
	default:
		return fmt.Sprintf("%d min %d s", seconds/60, seconds%60)
	}
}
