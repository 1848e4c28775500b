package app

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestTenancy sends random requests with random keys. No answer contains data of a project that the key is not for.
// Each answer has the status that its key and path require.
func TestTenancy(t *testing.T) {
	s := start(t, nil)
	const projects = 5
	marker := func(p int) string { return fmt.Sprintf("secret-of-%d-", p) }
	name := func(p int) string { return fmt.Sprintf("pr_%d", p) }
	var keys []string // by project; the last key cannot read entries
	for p := range projects {
		for e := range 20 {
			// The same entry ids in every project.
			id := fmt.Sprintf("en_%d", e)
			entry := newEntry(name(p), id, at(e))
			entry["entry_data"] = fmt.Sprintf(`{"v":"%s%d"}`, marker(p), e)
			entry["group_id"], entry["contact_id"] = marker(p)+"group", fmt.Sprintf("co_%d", p)
			s.MustIngest(t, "entries", entry)
			view := pageView(name(p), id, e, at(e))
			view["contact_id"], view["page_key"], view["url"] = marker(p)+"contact", marker(p)+"page", "https://x/"+marker(p)
			s.MustIngest(t, "events", view)
		}
		keys = append(keys, s.Keys.Key(name(p)))
	}
	keys = append(keys, s.Keys.Key(name(0), auth.EmbeddablesRead), "", "rk_nonsense")

	random := rand.New(rand.NewPCG(5, 6))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	cursors := []string{""} // of all projects and lists
	answered := map[int]int{}
	for range 3000 {
		k, p := random.IntN(len(keys)), random.IntN(projects)
		path := "/projects/" + pick(name(p), name(p), strings.ToUpper(name(p)), "pr_%30", name(p)+"%2F..%2F"+name(random.IntN(projects)))
		path += pick("/entries", "/entries-page-views", fmt.Sprintf("/entries/en_%d", random.IntN(22)), fmt.Sprintf("/entries/en_%d/events", random.IntN(22)))
		q := url.Values{}
		for _, parameter := range []string{"limit", "direction", "sort", "updated_after", "include_urls", "contact_id", "embeddable_id", "cursor"} {
			if random.IntN(4) == 0 {
				q.Set(parameter, map[string]string{
					"limit": pick("1", "5", "100", "0"), "direction": pick("ASC", "desc"), "sort": pick("created_at", "updated_at"),
					"updated_after": at(random.IntN(20)).Format("2006-01-02T15:04:05"), "include_urls": pick("true", "false"),
					"contact_id": fmt.Sprintf("co_%d", random.IntN(projects)), "embeddable_id": pick("emb_1", "emb_2"),
					"cursor": cursors[random.IntN(len(cursors))],
				}[parameter])
			}
		}
		headers := map[string]string{"Accept": pick("application/json", "application/x-ndjson")}
		a := s.Do(t, servicetest.Request{Path: path + "?" + q.Encode(), Key: keys[k], Headers: headers})
		answered[a.Status]++
		for other := range projects {
			if (k >= projects || other != k) && bytes.Contains(a.Body, []byte(marker(other))) {
				t.Fatalf("key of project %d: %s answered %d with data of project %d", k, path, a.Status, other)
			}
		}
		if a.Status == 200 && (k >= projects || !strings.HasPrefix(path, "/projects/"+name(k)+"/") && !strings.HasPrefix(path, "/projects/pr_%30/")) {
			t.Fatalf("key of project %d: %s answered 200", k, path)
		}
		if c := a.Header.Get("X-Next-Cursor"); c != "" {
			cursors = append(cursors, c)
		}
	}
	for _, status := range []int{200, 400, 401, 404} {
		if answered[status] == 0 {
			t.Errorf("no answer was %d: %v", status, answered)
		}
	}
	if answered[500]+answered[503] != 0 {
		t.Errorf("answers: %v", answered)
	}
}

// TestCursorsOfOtherLists sends every list's cursor with every other list. The answer is 400, never other rows.
func TestCursorsOfOtherLists(t *testing.T) {
	s := start(t, nil)
	key, other := s.Keys.Key("pr_1"), s.Keys.Key("pr_2")
	for _, p := range []string{"pr_1", "pr_2"} {
		for e := range 4 {
			s.MustIngest(t, "entries", newEntry(p, fmt.Sprintf("en_%d", e), at(e)))
		}
		for e := range 6 {
			s.MustIngest(t, "events", pageView(p, fmt.Sprintf("en_%d", e%2), e, at(e)))
		}
	}
	lists := []string{
		"/projects/pr_1/entries?limit=1",
		"/projects/pr_1/entries?limit=1&direction=ASC",
		"/projects/pr_1/entries?limit=1&sort=created_at",
		"/projects/pr_1/entries?limit=1&updated_after=2021-01-01",
		"/projects/pr_1/entries?limit=1&updated_before=2031-01-01",
		"/projects/pr_1/entries?limit=1&contact_id=co_1",
		"/projects/pr_1/entries?limit=1&embeddable_id=emb_1",
		"/projects/pr_1/entries?limit=1&group_id=gr_1&contact_id=co_1",
		"/projects/pr_1/entries-page-views?limit=1",
		"/projects/pr_1/entries-page-views?limit=1&contact_id=co_1",
		"/projects/pr_1/entries-page-views?limit=1&direction=ASC",
		"/projects/pr_1/entries/en_0/events?limit=1",
		"/projects/pr_1/entries/en_1/events?limit=1",
		"/projects/pr_1/entries/en_1/events?limit=1&direction=ASC",
		"/projects/pr_2/entries?limit=1",
		"/projects/pr_2/entries-page-views?limit=1",
	}
	keyOf := func(path string) string {
		if strings.HasPrefix(path, "/projects/pr_2") {
			return other
		}
		return key
	}
	s.CheckCursors(t, keyOf, lists...)
}
