package row

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/lectern-dev/lectern/bench/internal/load"
	"github.com/lectern-dev/lectern/bench/internal/must"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/sample"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

// insightEntries is the number of entries that the row insights asks about, all of one embeddable.
const insightEntries = 100_000

// addProgress is SQL that moves all entries to one embeddable, and adds a row of progress for each entry. In the column
// cells, each page has a time of one second.
var addProgress = []string{
	"UPDATE entries SET embeddable_id = 'flow_0'",
	`INSERT INTO progress (project_id, entry_id, part, version, several, embeddable_id, created_at, updated_at, furthest, ended,
	                       completed_after, cells, first_view, latest_view)
	SELECT project_id, entry_id, 0, 3, false, embeddable_id, created_at, updated_at, seq % 4, seq % 4 = 3,
	       CASE WHEN seq % 4 = 3 THEN seq % 1000 END, decode('000b' || repeat('020b', (seq % 4)::int), 'hex'), 0, 0
	FROM entries`,
	"VACUUM (FULL, ANALYZE) entries",
	"VACUUM (ANALYZE) entries, progress",
}

// insights measures the time of an overview, a funnel and the answers of 100,000 entries, against a count of the same
// entries in Postgres. Each round of a question is one request.
func (b *Bench) insights(ctx context.Context) (results []report.Result) {
	var all []*entries
	for _, v := range b.versions {
		e := v.makeEntries(ctx, stage.Definition{Name: "entries", Database: "entries_insights"},
			shape{projects: 1, each: insightEntries, events: sample.EventsOf})
		e.Database.Run(ctx, addProgress...)
		e.Database.Checkpoint(ctx)
		all = append(all, e)
	}
	sql := fmt.Sprintf("SELECT count(*) FROM entries WHERE project_id = '%s';\n", projectID(1))
	counted := must.Get(load.NewSQL(b.tree().Folder, "insights_count", sql, nil))
	for _, question := range []string{"overview", "funnel?embeddable_id=flow_0", "answers?embeddable_id=flow_0"} {
		var asked subjects
		for _, e := range all {
			asked = append(asked, &contender{cpu: e.CPU, run: func(ctx context.Context) (float64, int64) {
				answer := must.Get(get(ctx, http.DefaultClient, e.URL+"/projects/"+projectID(1)+"/entries-"+question, e.keys[projectID(1)], ""))
				return milliseconds(answer.whole), 1
			}})
		}
		count := figure(func(ctx context.Context) float64 {
			return 1000 / must.Get(counted.Run(ctx, all[0].Database.Reader, 1, b.Round))
		})
		rounds(ctx, b.Rounds, append(asked, count)...)
		name, _, _ := strings.Cut(question, "?")
		results = append(results, asked.result("insights_"+name, report.Milliseconds, report.Floor{}, "count(*)", count))
	}
	return results
}
