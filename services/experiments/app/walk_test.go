package app

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// row is an experiment in the model.
type row struct {
	id, status string
	created    int
}

// TestListsEqualModel compares filter, order and walks with a naive model on random data. It also walks while rows
// change: each unchanged row comes exactly once.
func TestListsEqualModel(t *testing.T) {
	t.Parallel()
	s, project := shared(t)
	statuses := []string{"draft", "running", "paused", "winner_picked", "completed", "discarded"}
	rapid.Check(t, func(rt *rapid.T) {
		s.Exec(t, `DELETE FROM experiments WHERE project_id = $1`, project)
		rows := map[string]row{}
		put := func(list ...row) {
			ids, states, seconds := make([]string, len(list)), make([]string, len(list)), make([]int, len(list))
			for i, r := range list {
				rows[r.id] = r
				ids[i], states[i], seconds[i] = r.id, r.status, r.created
			}
			s.Exec(t, `
				INSERT INTO experiments (project_id, experiment_id, flow_id, created_at, updated_at, status, changes)
				SELECT DISTINCT ON (id) $4, id, 'f', '2022-01-01Z'::timestamptz + second * interval '1 s', '2022-01-01Z', status, 1
				FROM unnest($1::text[], $2::text[], $3::int[]) WITH ORDINALITY AS u (id, status, second, line) ORDER BY id, line DESC
				ON CONFLICT (project_id, experiment_id) DO UPDATE SET status = excluded.status, created_at = excluded.created_at`, ids, states, seconds, project)
		}
		random := rapid.Custom(func(t *rapid.T) row {
			return row{rapid.StringMatching(`[a-cA-Cé]{1,2}`).Draw(t, "id"), rapid.SampledFrom(statuses).Draw(t, "status"), rapid.IntRange(0, 5).Draw(t, "created")}
		})
		put(rapid.SliceOfN(random, 0, 25).Draw(rt, "rows")...)
		status := rapid.SampledFrom(append([]string{""}, statuses...)).Draw(rt, "filter")
		var list []row
		for _, r := range rows {
			if status == "" || r.status == status {
				list = append(list, r)
			}
		}
		slices.SortFunc(list, func(a, b row) int { return -cmp.Or(cmp.Compare(a.created, b.created), strings.Compare(a.id, b.id)) })
		want := make([]string, len(list))
		for i, r := range list {
			want[i] = r.id
		}
		path := "/projects/" + project + "/experiments?"
		if status != "" {
			path += "status=" + status + "&"
		}
		pages := path + fmt.Sprintf("limit=%d", rapid.IntRange(1, 7).Draw(rt, "limit"))
		for _, p := range []string{path, pages} {
			if diff := gocmp.Diff(want, servicetest.Column(s.Walk(t, "", p, nil), "id"), equateEmpty); diff != "" {
				rt.Fatalf("%s: %s", p, diff)
			}
		}
		changed, got := map[string]bool{}, map[string]int{}
		for _, id := range servicetest.Column(s.Walk(t, "", pages, func() {
			r := random.Draw(rt, "changed")
			changed[r.id] = true
			put(r)
		}), "id") {
			got[id]++
		}
		for _, id := range want {
			if !changed[id] && got[id] != 1 {
				rt.Fatalf("%s: unchanged %q came %d times", pages, id, got[id])
			}
		}
	})
}

// equateEmpty treats nil and an empty list as equal.
var equateEmpty = gocmp.Transformer("empty", func(l []string) []string { return append([]string{}, l...) })

func TestTenancy(t *testing.T) {
	t.Parallel()
	shown := start(t, nil)
	demonstrate(t, shown, project)
	b := shown.Backing
	s := startOn(t, b, map[string]string{"EXPERIMENTS_AUTH": "required"})
	store := func(project, marker string) {
		for e := range 6 {
			s.MustIngest(t, "experiments", with(newExperiment(project, fmt.Sprintf("ex_%d", e), e, "running"), "name", marker))
		}
	}
	s.CheckTenancy(t, store, func(random *rand.Rand, cursor string) string {
		one := fmt.Sprintf("/experiments/ex_%d", random.IntN(10))
		return servicetest.Pick(random, "/experiments", one, one+"/history", "/experiments?status=running", "/experiments?limit=2", "/experiments?limit=0", "/experiments?cursor="+cursor)
	})
}

func TestCursorsOfOtherLists(t *testing.T) {
	t.Parallel()
	s, project := demo(t)
	for i := range 3 {
		s.MustIngest(t, "experiments", newExperiment(project+"_other", fmt.Sprintf("ex_%d", i), i, "paused"), newExperiment(project, fmt.Sprintf("ex_p%d", i), i, "paused"))
	}
	s.CheckCursors(t, func(string) string { return "" },
		"/projects/"+project+"/experiments?limit=1",
		"/projects/"+project+"/experiments?limit=1&status=running",
		"/projects/"+project+"/experiments?limit=1&status=paused",
		"/projects/"+project+"_other/experiments?limit=1",
		"/projects/"+project+"_other/experiments?limit=1&status=paused",
	)
}
