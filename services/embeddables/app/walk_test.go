package app

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestWalkOfEmbeddables compares order and walks with a naive model, while embeddables are added and removed. Each
// embeddable that is not removed comes exactly once.
func TestWalkOfEmbeddables(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	put := func(ids ...string) {
		s.Exec(t, `INSERT INTO embeddables SELECT $2, id, 't', 'g', sha256('{}') FROM unnest($1::text[]) id ON CONFLICT DO NOTHING`, ids, project)
	}
	rapid.Check(t, func(rt *rapid.T) {
		s.Exec(t, `DELETE FROM embeddables WHERE project_id = $1`, project)
		id := rapid.StringMatching(`[a-dA-D_é\x{10FFFF}]{1,3}`)
		there := map[string]bool{}
		ids := rapid.SliceOfN(id, 0, 20).Draw(rt, "ids")
		put(ids...)
		for _, v := range ids {
			there[v] = true
		}
		want := []string{}
		for v := range there {
			want = append(want, v)
		}
		slices.Sort(want)
		path := fmt.Sprintf("/projects/"+project+"/embeddables?limit=%d", rapid.IntRange(1, 7).Draw(rt, "limit"))
		for _, p := range []string{path, "/projects/" + project + "/embeddables"} {
			if diff := gocmp.Diff(want, servicetest.Column(s.Walk(t, key, p, nil), "embeddable_id")); diff != "" {
				rt.Fatalf("%s: %s", p, diff)
			}
		}
		changed, got := map[string]bool{}, map[string]int{}
		for _, v := range servicetest.Column(s.Walk(t, key, path, func() {
			v := id.Draw(rt, "changed")
			changed[v] = true
			if there[v] {
				s.Exec(t, `DELETE FROM embeddables WHERE project_id = $1 AND embeddable_id = $2`, project, v)
			} else {
				put(v)
			}
		}), "embeddable_id") {
			if got[v]++; got[v] > 1 {
				rt.Fatalf("%q came twice", v)
			}
		}
		for _, v := range want {
			if !changed[v] && got[v] != 1 {
				rt.Fatalf("unchanged %q came %d times", v, got[v])
			}
		}
	})
}

// TestWalkOfVersions walks through versions with every limit and in both directions.
func TestWalkOfVersions(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	s.MustIngest(t, "embeddables", newEmbeddable(project, "emb_1"))
	numbers := []int{0, 1, 2, 3, 5, 8, 13, 700, 1 << 40, 1<<53 - 1}
	for _, n := range numbers {
		s.MustIngest(t, "embeddable-versions", servicetest.With(newVersion(project, "emb_1", 1), "version_number", n))
	}
	for limit := 1; limit <= len(numbers)+1; limit++ {
		for _, direction := range []string{"ASC", "DESC"} {
			want := slices.Clone(numbers)
			if direction == "DESC" {
				slices.Reverse(want)
			}
			var got []int
			for _, v := range s.Walk(t, key, fmt.Sprintf("/projects/"+project+"/embeddables/emb_1/versions?limit=%d&direction=%s", limit, direction), nil) {
				got = append(got, int(v["version_number"].(float64)))
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("limit %d, %s: %s", limit, direction, diff)
			}
		}
	}
	// More than one chunk.
	s.Exec(t, `INSERT INTO versions SELECT $1, 'emb_1', 1000000 + i, '2022-01-01Z', sha256('{}') FROM generate_series(1, 12000) i`, project)
	for _, query := range []string{"limit=11000", "limit=11000&direction=asc", "limit=1000000"} {
		a := s.Get(t, key, "/projects/"+project+"/embeddables/emb_1/versions?"+query)
		want := map[bool]int{true: 12010, false: 11000}[query == "limit=1000000"]
		if n := bytes.Count(a.Body, []byte(`"version_number"`)); n != want || (a.Header.Get("Link") != "") != (want == 11000) {
			t.Errorf("%s: %d versions, want %d, Link %q", query, n, want, a.Header.Get("Link"))
		}
	}
	if n := len(s.Walk(t, key, "/projects/"+project+"/embeddables/emb_1/versions?limit=7000", nil)); n != 12010 {
		t.Errorf("a walk of long pages gave %d versions", n)
	}
}

func TestTenancy(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	store := func(project, marker string) {
		for e := range 6 {
			id := fmt.Sprintf("emb_%d", e)
			s.MustIngest(t, "embeddables", servicetest.With(servicetest.With(newEmbeddable(project, id), "title", marker), "json_string_prod", `"`+marker+`"`))
			s.MustIngest(t, "embeddable-versions", servicetest.With(newVersion(project, id, e), "json_string", `"`+marker+`"`))
		}
	}
	s.CheckTenancy(t, store, func(random *rand.Rand, cursor string) string {
		one := fmt.Sprintf("/embeddables/emb_%d", random.IntN(8))
		path := servicetest.Pick(random, "/embeddables", one, one+"/versions", one+fmt.Sprintf("/versions/%d", random.IntN(7)))
		return path + servicetest.Pick(random, "", "", "?limit=3", "?direction=asc", "?cursor="+cursor)
	})
}

func TestCursorsOfOtherLists(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, p := range []string{"pr_1", "pr_2"} {
		for _, id := range []string{"emb_1", "emb_2"} {
			s.MustIngest(t, "embeddables", newEmbeddable(p, id))
			s.MustIngest(t, "embeddable-versions", newVersion(p, id, 1), newVersion(p, id, 2), newVersion(p, id, 3))
		}
		s.MustIngest(t, "embeddables", newEmbeddable(p, "emb_3"))
	}
	keys := map[string]string{"pr_1": s.Keys.Key("pr_1"), "pr_2": s.Keys.Key("pr_2")}
	s.CheckCursors(t, func(path string) string { return keys[strings.Split(path, "/")[2]] },
		"/projects/pr_1/embeddables?limit=1",
		"/projects/pr_1/embeddables/emb_1/versions?limit=1",
		"/projects/pr_1/embeddables/emb_1/versions?limit=1&direction=ASC",
		"/projects/pr_1/embeddables/emb_2/versions?limit=1",
		"/projects/pr_2/embeddables?limit=1",
		"/projects/pr_2/embeddables/emb_1/versions?limit=1",
	)
}
